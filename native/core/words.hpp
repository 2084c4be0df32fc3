// SPDX-License-Identifier: Apache-2.0
//
// Words of 64 bits in bytes, the lowest byte first.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace limen {

inline void put_word(std::string& bytes, std::uint64_t word) {
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(word >> (8 * i) & 255));
}
inline std::uint64_t get_word(const std::string& bytes, std::size_t at) {
    std::uint64_t value = 0;
    for (std::size_t i = 8; i-- > 0;)
        value = value << 8 | static_cast<unsigned char>(bytes[8 * at + i]);
    return value;
}

}  // namespace limen

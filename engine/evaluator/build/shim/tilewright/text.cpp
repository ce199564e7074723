// Messages, and the names and sizes of types and devices.
#include <tilewright/check.h>

#include <cstdio>

namespace tilewright {

void append(std::string& text, const char* more) { text += more; }
void append(std::string& text, const std::string& more) { text += more; }
void append(std::string& text, long long number) { text += std::to_string(number); }
void append(std::string& text, unsigned long long number) { text += std::to_string(number); }
void append(std::string& text, char letter) { text += letter; }
void append(std::string& text, c10::Device device) { text += device.str(); }
void append(std::string& text, double number) {
  char digits[32];
  std::snprintf(digits, sizeof(digits), "%g", number);
  text += digits;
}
void append(std::string& text, c10::IntArrayRef sizes) {
  text += '[';
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  text += ']';
}

void fail(const std::string& message) { throw std::runtime_error(message); }
void fail_check(const char* condition, const std::string& message) {
  if (!message.empty()) fail(message);
  fail(std::string("Expected ") + condition +
       " to be true, but got false.  (Could this error message be improved?  If so, please report an enhancement request "
       "to PyTorch.)");
}
void warn(const std::string& message) { std::fprintf(stderr, "Warning: %s\n", message.c_str()); }

}  // namespace tilewright

namespace c10 {

const char* toString(ScalarType t) {
  switch (t) {
    case ScalarType::Byte: return "Byte";
    case ScalarType::Char: return "Char";
    case ScalarType::Short: return "Short";
    case ScalarType::Int: return "Int";
    case ScalarType::Long: return "Long";
    case ScalarType::Half: return "Half";
    case ScalarType::Float: return "Float";
    case ScalarType::Double: return "Double";
    case ScalarType::Bool: return "Bool";
    case ScalarType::BFloat16: return "BFloat16";
    case ScalarType::Float8_e5m2: return "Float8_e5m2";
    case ScalarType::Float8_e4m3fn: return "Float8_e4m3fn";
    default: return "UNKNOWN_SCALAR";
  }
}

size_t elementSize(ScalarType t) {
  switch (t) {
    case ScalarType::Short: case ScalarType::Half: case ScalarType::BFloat16: return 2;
    case ScalarType::Int: case ScalarType::Float: case ScalarType::ComplexHalf: return 4;
    case ScalarType::Long: case ScalarType::Double: case ScalarType::ComplexFloat: return 8;
    case ScalarType::ComplexDouble: return 16;
    default: return 1;
  }
}

Device::Device(const std::string& name) : type_(DeviceType::CPU), index_(-1) {
  size_t colon = name.find(':');
  std::string kind = name.substr(0, colon);
  if (kind == "cuda") type_ = DeviceType::CUDA;
  else if (kind != "cpu") tilewright::fail("Invalid device string: '" + name + "'");
  if (colon != std::string::npos) index_ = static_cast<DeviceIndex>(std::stoi(name.substr(colon + 1)));
}
std::string Device::str() const {
  std::string text = is_cuda() ? "cuda" : "cpu";
  return has_index() ? text + ":" + std::to_string(static_cast<int>(index_)) : text;
}

}  // namespace c10

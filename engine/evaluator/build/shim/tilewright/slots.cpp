// What travels between PyTorch and an extension: lists, strings, operators, streams and device guards.
#include <tilewright/calls.h>
#include <tilewright/cuda.h>

namespace tilewright {

// PyTorch frees what new_slot allocates, and take_slot what PyTorch allocated: both sides use plain new and delete.
Slot new_slot(Slot value) { return bits_of(new Slot(value)); }
Slot take_slot(Slot pointer) {
  Slot* from = from_bits<Slot*>(pointer);
  Slot value = *from;
  delete from;
  return value;
}
size_t list_size(Slot list) {
  size_t n = 0;
  must(torch_list_size(from_bits<TwList>(list), &n), "list size");
  return n;
}
Slot list_item(Slot list, size_t i) {
  Slot item = 0;
  must(torch_list_get_item(from_bits<TwList>(list), i, &item), "list item");
  return item;
}
Slot new_list(size_t room) {
  TwList list = nullptr;
  must(torch_new_list_reserve_size(room, &list), "new list");
  return bits_of(list);
}
void list_push(Slot list, Slot item) { must(torch_list_push_back(from_bits<TwList>(list), item), "list push"); }
void end_list(Slot list) { must(torch_delete_list(from_bits<TwList>(list)), "delete list"); }
std::string take_string(Slot text) {
  TwString handle = from_bits<TwString>(text);
  size_t size = 0;
  const char* letters = nullptr;
  must(torch_string_length(handle, &size), "string length");
  must(torch_string_c_str(handle, &letters), "string");
  std::string copy(letters, size);
  must(torch_delete_string(handle), "delete string");
  return copy;
}
Slot new_string(const std::string& text) {
  TwString handle = nullptr;
  must(torch_new_string_handle(text.data(), text.size(), &handle), "new string");
  return bits_of(handle);
}

// The libraries are kept for the life of the process: an extension is never unloaded.
void add_operator(const char* space, const std::string& schema, const char* name, Boxed function) {
  TwLibrary declared = nullptr, filled = nullptr;
  must(aoti_torch_library_init_fragment(space, "extension", 1, &declared), "library");
  must(aoti_torch_library_def(declared, schema.c_str()), "library def");
  must(aoti_torch_library_init_impl(space, "CompositeExplicitAutograd", "extension", 1, &filled), "library");
  must(torch_library_impl(filled, name, function, aoti_torch_abi_version()), "library impl");
}

void* current_stream(int device) {
  if (!aoti_torch_get_current_cuda_stream) fail("this PyTorch was built without CUDA");
  void* stream = nullptr;
  must(aoti_torch_get_current_cuda_stream(device, &stream), "current stream");
  return stream;
}
void* enter_device(int index) {
  if (!aoti_torch_create_cuda_guard) fail("this PyTorch was built without CUDA");
  void* guard = nullptr;
  must(aoti_torch_create_cuda_guard(index, &guard), "device guard");
  return guard;
}
void leave_device(void* guard) { aoti_torch_delete_cuda_guard(guard); }

}  // namespace tilewright

// The functions of PyTorch's stable C interface that the runtime calls, declared here so that no header of it is read.
// They are the same in every PyTorch from 2.10 on.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
using TwTensor = tilewright::Opaque*;

uint64_t aoti_torch_abi_version();
int32_t aoti_torch_new_tensor_handle(TwTensor, TwTensor*);
int32_t aoti_torch_new_uninitialized_tensor(TwTensor*);
int32_t aoti_torch_delete_tensor_object(TwTensor);
int32_t aoti_torch_is_defined(TwTensor, bool*);
int32_t aoti_torch_get_data_ptr(TwTensor, void**);
int32_t aoti_torch_get_dim(TwTensor, int64_t*);
int32_t aoti_torch_get_numel(TwTensor, int64_t*);
int32_t aoti_torch_get_sizes(TwTensor, int64_t**);
int32_t aoti_torch_get_size(TwTensor, int64_t, int64_t*);
int32_t aoti_torch_get_strides(TwTensor, int64_t**);
int32_t aoti_torch_get_stride(TwTensor, int64_t, int64_t*);
int32_t aoti_torch_get_dtype(TwTensor, int32_t*);
int32_t aoti_torch_get_device_type(TwTensor, int32_t*);
int32_t aoti_torch_get_device_index(TwTensor, int32_t*);
int32_t aoti_torch_get_storage_offset(TwTensor, int64_t*);
int32_t aoti_torch_is_contiguous(TwTensor, bool*);
int32_t aoti_torch_empty_strided(int64_t, const int64_t*, const int64_t*, int32_t, int32_t, int32_t, TwTensor*);
int32_t aoti_torch_as_strided(TwTensor, const int64_t*, const int64_t*, TwTensor*);
int32_t aoti_torch_copy_(TwTensor, TwTensor, int32_t);
int32_t aoti_torch_zero_(TwTensor);
int32_t aoti_torch_aten_fill__Scalar(TwTensor, double);
int32_t torch_call_dispatcher(const char*, const char*, uint64_t*, uint64_t);

using TwLibrary = struct TwLibraryOpaque*;
int32_t aoti_torch_library_init_fragment(const char*, const char*, uint32_t, TwLibrary*);
int32_t aoti_torch_library_init_impl(const char*, const char*, const char*, uint32_t, TwLibrary*);
int32_t aoti_torch_library_def(TwLibrary, const char*);
int32_t torch_library_impl(TwLibrary, const char*, void (*)(uint64_t*, uint64_t, uint64_t), uint64_t);
int32_t aoti_torch_delete_library_object(TwLibrary);

using TwList = struct TwListOpaque*;
int32_t torch_new_list_reserve_size(size_t, TwList*);
int32_t torch_list_size(TwList, size_t*);
int32_t torch_list_get_item(TwList, size_t, uint64_t*);
int32_t torch_list_push_back(TwList, uint64_t);
int32_t torch_delete_list(TwList);
using TwString = struct TwStringOpaque*;
int32_t torch_new_string_handle(const char*, size_t, TwString*);
int32_t torch_delete_string(TwString);
int32_t torch_string_length(TwString, size_t*);
int32_t torch_string_c_str(TwString, const char**);

int32_t torch_parallel_for(int64_t, int64_t, int64_t, void (*)(int64_t, int64_t, void*), void*);
int32_t torch_get_num_threads(uint32_t*);

// Only in a PyTorch built for CUDA, so absent is allowed; the first is there from 2.13 on.
__attribute__((weak)) const char* torch_exception_get_what_without_backtrace();
__attribute__((weak)) int32_t aoti_torch_get_current_cuda_stream(int32_t, void**);
__attribute__((weak)) int32_t aoti_torch_create_cuda_guard(int32_t, void**);
__attribute__((weak)) int32_t aoti_torch_delete_cuda_guard(void*);
__attribute__((weak)) int32_t aoti_torch_cuda_guard_set_index(void*, int32_t);
}

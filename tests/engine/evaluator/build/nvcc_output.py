"""What nvcc 13.0 and its programs print, recorded and cut."""

from __future__ import annotations

UNKNOWN_NAME = """[1/5] export PATH=/usr/local/cuda-13.0/bin; g++ -E kernel.cu
FAILED: [code=1] kernel.fatbin.c
candidate.py(26): error: identifier "Unknown" is undefined
              r.x = Unknown(1) + __fdividef(1.0f, 1.0f + __expf(-v.x));
                    ^

1 error detected in the compilation of "kernel.cu".
[2/5] export PATH=/usr/local/cuda-13.0/bin; cudafe++ kernel.cu
candidate.py(26): error: identifier "Unknown" is undefined
              r.x = Unknown(1) + __fdividef(1.0f, 1.0f + __expf(-v.x));
                    ^

1 error detected in the compilation of "kernel.cu".
ninja: build stopped: subcommand failed.
"""

TEMPLATE = """/usr/include/cute/underscore.hpp(169): error: incomplete type "tuple_size<Tensor<A>>" is not allowed
      static_assert(tuple_size<A>::value == tuple_size<B>::value, "Mismatched Ranks");
                                            ^
          detected during:
            instantiation of "auto cute::dice(const A &, const B &)" at line 1066 of /usr/include/cute/tensor_impl.hpp
            instantiation of "auto cute::local_tile(Tensor &&)" at line 41 of candidate.py
            instantiation of "void gemm_device(int)" at line 124 of candidate.py

/usr/include/cute/container/tuple.hpp(245): note #3327-D: candidate function template "cute::get<I>" failed deduction
  get(tuple<T...>&& t) noexcept
  ^
candidate.py(56): error: no instance of overloaded function "local_partition" matches the argument list
            argument types are: (<error-type>, cute::Layout<A>, const unsigned int)
    Tensor tAgA = local_partition(gA, tA, threadIdx.x);
                  ^
"""

SHARED = "ptxas error   : Entry function '_Z4bigkPf' uses too much shared data (0x13880 bytes, 0xc000 max)\n"

RESOURCES = """ptxas info    : 11 bytes gmem
ptxas info    : Compiling entry function '_Z11gemm_deviceIffLi128EN4cute5tupleIJiEEEEvPKT_' for 'sm_90a'
ptxas info    : Function properties for _Z11gemm_deviceIffLi128EN4cute5tupleIJiEEEEvPKT_
    688 bytes stack frame, 1020 bytes spill stores, 996 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 688 bytes cumulative stack size, 8304 bytes smem
ptxas info    : Compile time = 39.192 ms
ptxas info    : Compiling entry function '_Z5swishPKfPfl' for 'sm_90a'
ptxas info    : Function properties for _Z5swishPKfPfl
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 0 barriers
"""

DRY_RUN = """#$ _NVVM_BRANCH_=nvvm
#$ CICC_PATH=/cuda/nvvm/bin
#$ NVVMIR_LIBRARY_DIR=/cuda/nvvm/libdevice
#$ LD_LIBRARY_PATH=/cuda/lib:
#$ PATH=/cuda/bin:/usr/bin
#$ "/usr/bin"/g++ -D__CUDA_ARCH_LIST__=900 -E -x c++ -D__CUDACC__ "kernel.cu" -o "./kernel.cpp4.ii"
#$ cudafe++ --c++17 --gen_module_id_file --module_id_file_name "./kernel.module_id" "./kernel.cpp4.ii"
#$ "/usr/bin"/g++ -D__CUDA_ARCH__=900 -E -x c++ "kernel.cu" -o "./kernel.cpp1.ii"
#$ "$CICC_PATH/cicc" --c++17 --module_id_file_name "./kernel.module_id" "./kernel.cpp1.ii" -o "./kernel.ptx"
#$ ptxas -arch=sm_90a -v "./kernel.ptx" -o "./kernel.cubin"
#$ fatbinary --create="./kernel.fatbin" --embedded-fatbin="./kernel.fatbin.c"
#$ rm ./kernel.fatbin
#$ "/usr/bin"/g++ -D__CUDA_ARCH__=900 -c -x c++ "./kernel.cudafe1.cpp" -o "kernel.o"
"""

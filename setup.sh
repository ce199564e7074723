#!/bin/sh
# Makes .venv ready for `make run` and `make test`: sh setup.sh REQUIREMENTS MARK...
# Ends in one sentence with the remedy where something is in the way, and mends what an earlier try left half done.
requirements=$1
shift

stop() {
  echo "tilewright: $1" >&2
  exit 1
}

free_mb() { echo "$(df -Pm "$1" | awk 'NR == 2 { print $4 }') MB free in $1"; }
has_pip() { .venv/bin/python -m pip --version >/dev/null 2>&1; }
is_new() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

command -v "${CXX:-g++}" >/dev/null || stop "a C++ compiler is needed to build kernels: apt install g++"
if ! has_pip; then
  for python in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11 ""; do
    is_new "$python" && break
  done
  [ -n "$python" ] || stop "Python 3.11 or later is needed and was not found: install it, or name it with make PYTHON=/path/to/python3.11"
  "$python" -c 'import venv, ensurepip' 2>/dev/null || stop "$python has no venv module: apt install python3-venv"
  rm -rf .venv
  if ! "$python" -m venv .venv >/dev/null 2>&1; then
    rm -rf .venv
    stop "$python could not create $PWD/.venv: free some space ($(free_mb "$PWD")), or see what $python -m venv .venv says"
  fi
fi

echo "Installing the packages of $requirements into .venv (a few minutes the first time)"
if ! said=$(.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -r "$requirements" 2>&1); then
  case $said in
    *"No space left on device"*)
      stop "the disk is full: free some space ($(free_mb "$PWD"), $(free_mb "${TMPDIR:-/tmp}")), then try again" ;;
    *"connection broken"* | *"Max retries"* | *[Tt]imeout* | *ProxyError*)
      stop "the packages could not be downloaded: check the network or set HTTPS_PROXY or PIP_INDEX_URL, then try again" ;;
  esac
  echo "$said" | tail -n 5 >&2
  stop "pip could not install the packages of $requirements: see its message above, then try again"
fi
# All processors compile what is used of it; of the large packages left out that is little or nothing, and an import
# finds it.
# Where something is missing, whoever needs it says so later.
rarely='/(tests?|plotly|openai|scipy|sklearn|pandas|altair|pygments|PIL|networkx|sympy|mpmath|pip|mypyc?|setuptools'
rarely="$rarely|joblib|cutlass_[a-z]*|torchgen|torch/(_inductor|testing|distributed|onnx|_vendor))/"
PYTHONDONTWRITEBYTECODE= .venv/bin/python -c "import torch.utils.cpp_extension, torch._dynamo" 2>/dev/null &
PYTHONDONTWRITEBYTECODE= .venv/bin/python -c "import plotly, openai, streamlit.testing.v1" 2>/dev/null &
wait
.venv/bin/python -m compileall -qq -j 0 -x "$rarely" .venv/lib || true
touch "$@"

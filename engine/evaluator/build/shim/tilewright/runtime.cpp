// What the light headers declare, compiled once per machine and linked into every extension.
#include "slots.cpp"
#include "tensor.cpp"
#include "text.cpp"

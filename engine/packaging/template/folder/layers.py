"""What `kernels.kernelize` gives to layers of a network that are mapped to it. Its rules: no constructor, no members
beside these, and a `forward` with the arguments of the layer's own."""

from torch import nn

from ._modules import call_layer


class Layer(nn.Module):
    """Stands in for the `forward` of a layer, which keeps its class, its parameters and its place."""

    can_torch_compile = True
    has_backward = True

    def forward(self, *inputs):
        """By a kernel where one takes the call, else by the layer's own class."""
        return call_layer(self, (*inputs,))

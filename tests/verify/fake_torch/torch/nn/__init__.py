from types import SimpleNamespace

import torch


def _conv2d(image, weight, padding):
    wrong = image.device != "cpu" and torch.step("conv2d", image.device)
    batch, channels, height, width = image.shape
    outputs = weight.shape[0]
    data = []
    for b in range(batch):
        for o in range(outputs):
            for y in range(height):
                for x in range(width):
                    total = 0.0
                    for c in range(channels):
                        for i in range(3):
                            for j in range(3):
                                row, column = y + i - padding, x + j - padding
                                if 0 <= row < height and 0 <= column < width:
                                    pixel = image.data[((b * channels + c) * height + row) * width + column]
                                    total += pixel * weight.data[((o * channels + c) * 3 + i) * 3 + j]
                    data.append(total)
    if wrong:
        data[5] += 2
    return torch.Tensor(data, (batch, outputs, height, width), image.dtype, image.device)


functional = SimpleNamespace(conv2d=_conv2d)

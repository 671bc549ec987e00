"""What `cudadoctor fit` shows on the screen: whole screens, and the promises that hold for every one of them."""

from __future__ import annotations

import re
from typing import Callable

import pytest
from fit_answers import (
    GIB,
    INFERENCE_NEED,
    LLAMA,
    RTX_4090,
    answer,
    gib,
    interval,
    on_eight,
    term,
    tight,
    training,
    without_gpu,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadoctor.fit.answer import Answer
from cudadoctor.fit.measured import CudaContext, DryRun, Measured
from cudadoctor.fit.need import Interval, Need
from cudadoctor.fit.target import Target
from cudadoctor.fit.workload import ALLOCATED, DEVICE, RESERVED, Workload
from cudadoctor.render import fit_bar
from cudadoctor.render.fit_sizes import both, number, seconds, span
from cudadoctor.render.fit_text import render, render_all
from cudadoctor.render.fit_view import FitView, asked_need
from cudadoctor.render.style import Style, columns

ANSWERS: dict[str, Callable[[], Answer]] = {
    "fits": answer,
    "tight": tight,
    "cured": training,
    "uncured": lambda: training(cured=False),
    "without a GPU": without_gpu,
    "on eight": on_eight,
}

# Whole screens: what a person sees who asks for Llama 3.1 8B on an RTX 4090.

FITS = """\
ok    llama-3.1-8b fits on RTX 4090: it takes 16.0 to 16.7 GiB (17.2 to 17.9 GB)
      as nvidia-smi counts, of 23.5 GiB (25.2 GB) free

                      GiB       GB                             23.5 GiB free |
  weights           14.96    16.06  ##########################               |
  activations        0.30     0.32                            #              |
  KV cache           0.50     0.54                             .             |
  kept by torch      0.10     0.11                             #             |
  CUDA context       0.45     0.48                              .            |
  together          16.31    17.51  ############################             |
  margin, up to      0.39     0.42                              -            |

                      GiB  9 of 10 times       GB  9 of 10 times
  torch allocates   15.76  15.60 to 15.90   16.92  16.75 to 17.07
  torch reserves    15.86  15.70 to 16.10   17.03  16.86 to 17.29
  nvidia-smi shows  16.31  16.00 to 16.70   17.51  17.18 to 17.93

  model       8.03 billion parameters, weights in bf16
  run         inference with transformers, batch 1, 4,096 tokens, KV cache in
              bf16, sdpa attention
  batch       at most 14 of 4,096 tokens fit
  context     at most 61,440 tokens fit at batch 1
  cache       128 MiB (134 MB) for every 1,024 tokens of a sequence
  speed       at most 63 tokens/s for one sequence: the memory's bandwidth
              allows no more
  loading     2.3 to 32 s from the disk
  RAM         5.00 to 15.0 GiB (5.37 to 16.1 GB) to load it
  peak        prefill

Taken for granted:
  - the prompt passes at once
  - a CUDA context of 0.45 GiB: `--measure` measures it

more  cudadoctor fit llama-3.1-8b --explain
      cudadoctor explain vram-fit
"""

DOES_NOT_FIT = """\
FAIL  llama-3.1-8b, trained in full, does not fit on RTX 4090: it takes 94.5 to
      110 GiB (101 to 119 GB) as nvidia-smi counts, of 23.5 GiB (25.2 GB) free

                      GiB       GB           | 23.5 GiB free
  weights           14.96    16.06  ######   |
  gradients         14.96    16.06        ###XX
  optimizer         29.92    32.12           | XXXXXXXXXXX
  activations       28.00    30.06           |            XXXXXXXXXXX
  logits             7.30     7.84           |                       XX
  kept by torch      4.00     4.29           |                         XX
  CUDA context       0.45     0.48           |                           .
  together          99.58   106.92  #########XXXXXXXXXXXXXXXXXXXXXXXXXXXX
  margin, up to     10.92    11.73           |                           XXXX
"""

CURE = """
fix   the 3 cheapest changes that help, together: then it takes 9.10 to 12.4 GiB
      (9.77 to 13.3 GB) of 23.5 GiB (25.2 GB)
      1  Let the allocator grow its segments: saves 3.50 GiB (3.76 GB), costs
         nothing
           export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
      2  Gradient checkpointing: saves 26.0 GiB (27.9 GB), costs some speed
           model.gradient_checkpointing_enable()
      3  QLoRA instead of training all parameters: saves 70.0 GiB (75.2 GB),
         costs some quality and some speed
           BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
           LoraConfig(r=16)

or a model  llama-3.2-1b: takes 14.0 to 17.0 GiB (15.0 to 18.3 GB)
or a card   H200: 141 GiB (151 GB), 4,800 GB/s, 989 TFLOP/s; takes 94.5 to 110
            GiB (101 to 119 GB)
or rent     2x H100 SXM5 80GB: 80.0 GiB (85.9 GB), 3,350 GB/s, 989 TFLOP/s;
            takes 60.0 to 70.0 GiB (64.4 to 75.2 GB) on each GPU

warn  RAM: 32 GiB (34 GB) is less than the 64 GiB (69 GB) that loading takes at
      its peak
"""


def shown(made: Answer, **options: object) -> str:
    return render(FitView(made, again="llama-3.1-8b", style=Style(**options)))  # type: ignore[arg-type]


def test_a_model_that_fits() -> None:
    assert shown(answer()) == FITS


def test_a_model_that_does_not_fit_and_the_cheapest_changes_that_make_it_fit() -> None:
    text = shown(training())
    assert text.startswith(DOES_NOT_FIT) and CURE in text


@pytest.mark.parametrize(
    "made, first",
    [
        (
            tight(),
            "warn  llama-3.1-8b fits only just on RTX 4090: it takes 16.0 to 16.7 GiB (17.2 to 17.9 GB) as nvidia-smi "
            "counts, of 16.5 GiB (17.7 GB) free",
        ),
        (
            without_gpu(),
            "????  llama-3.1-8b needs 16.0 to 16.7 GiB (17.2 to 17.9 GB) as nvidia-smi counts, and there is no GPU to "
            "compare it with",
        ),
        (
            on_eight(),
            "ok    llama-3.1-8b fits on 8x RTX 4090: it takes 16.0 to 16.7 GiB (17.2 to 17.9 GB) on each GPU as "
            "nvidia-smi counts, of 23.5 GiB (25.2 GB) free",
        ),
        (
            answer(target=Target("memory", (RTX_4090._replace(name="24 GiB", free=24 * GIB),)), available=24 * GIB),
            "ok    llama-3.1-8b fits into 24.0 GiB (25.8 GB): it takes 16.0 to 16.7 GiB (17.2 to 17.9 GB) as "
            "nvidia-smi counts",
        ),
        (
            answer(target=Target("machine", (RTX_4090._replace(name="RTX A6000", free=gib(47)), RTX_4090))),
            "ok    llama-3.1-8b fits on RTX 4090 (one of 2 GPUs): it takes 16.0 to 16.7 GiB (17.2 to 17.9 GB) as "
            "nvidia-smi counts, of 23.5 GiB (25.2 GB) free",
        ),
        (
            answer(verdict="unknown", available=None),
            "????  llama-3.1-8b needs 16.0 to 16.7 GiB (17.2 to 17.9 GB) as nvidia-smi counts, and how much is free on "
            "RTX 4090 is not known",
        ),
    ],
)
def test_the_first_line_is_the_verdict_with_its_interval(made: Answer, first: str) -> None:
    paragraph = shown(made).partition("\n\n")[0]
    assert " ".join(paragraph.split()) == " ".join(first.split())


def test_without_a_cure_each_change_is_shown_with_what_it_saves() -> None:
    text = " ".join(shown(training(cured=False)).split())
    assert "fix no changes that are known make it fit on RTX 4090; each of these alone saves:" in text
    assert "Gradient checkpointing: saves 26.0 GiB (27.9 GB), costs some speed" in text


def test_what_fits_gets_no_advice_unless_it_is_asked_for() -> None:
    changes = training().changes
    assert "expandable_segments" not in shown(answer(changes=changes))
    assert "each alone" in shown(answer(changes=changes), verbose=True)


def test_several_answers_stand_apart() -> None:
    one = FitView(answer(), again="llama-3.1-8b")
    assert render_all([one, one]) == FITS + "\n" + FITS


def test_explained_terms_show_formula_numbers_and_source() -> None:
    text = render(FitView(answer(), explain=True))
    assert (
        """
Weights, 15.0 GiB (16.1 GB)
  formula  P * 2 bytes
  numbers  8,030,261,248 * 2 = 16,060,522,496 bytes
  source   transformers, modeling_llama.py

Activations: prefill, 0.30 GiB (0.32 GB)
"""
        in text
    )
    assert text.count("  formula  ") == len(INFERENCE_NEED.terms)
    assert "--explain" not in text


MEASURED = Measured(
    DryRun(
        "measured",
        torch="2.13.0+cpu",
        transformers="5.24.0",
        model_class="LlamaForCausalLM",
        layers=(32,),
        layers_run=(2, 3),
        weights=16_060_522_496,
        kv_cache=gib(0.5),
        peak=gib(15.7),
        phase="prefill",
        seconds=21.6,
        notes=("flash attention is taken as torch's own, which keeps the same",),
    ),
    (CudaContext(0, 420 << 20, "process", True),),
)


def test_a_second_opinion_stands_beside_the_estimate() -> None:
    text = render(FitView(answer(), measured=MEASURED))
    assert (
        """
Measured here:
  - dry run: LlamaForCausalLM of transformers 5.24.0 on torch 2.13.0+cpu, 2 and
    3 of 32 layers, without weights and GPU, 22 s
    weights           15.0 GiB (16.1 GB)
    KV cache          0.50 GiB (0.54 GB)
    most allocated    15.7 GiB (16.9 GB)      in the prompt's pass
    estimated         15.8 GiB (16.9 GB)      the dry run is -0.4%, within its
                                              interval
    flash attention is taken as torch's own, which keeps the same
  - CUDA context on GPU 0: 420 MiB, with torch's kernels
"""
        in text
    )


def test_a_second_opinion_that_cannot_be_had_says_why() -> None:
    found = Measured(DryRun("cannot", "torch is not installed in this environment"))
    text = render(FitView(answer(), measured=found))
    assert "  - dry run: not possible: torch is not installed in this environment\n" in text


@pytest.mark.parametrize(
    "numbers, text",
    [
        ("2 x 5", "2 x 5 = 10 bytes"),
        ("10", "10 bytes"),
        ("", "10 bytes"),
        ("5 to 20", "5 to 20, taken: 10 bytes"),
    ],
)
def test_what_was_put_in_and_what_comes_out(numbers: str, text: str) -> None:
    one = term("context", 10, "measured elsewhere", numbers)
    need = INFERENCE_NEED._replace(terms=(one,))
    assert f"  numbers  {text}\n" in render(FitView(answer(need=need), explain=True))


# -- promises of every screen -----------------------------------------------------------------------------------------


@pytest.mark.once
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(ANSWERS)), st.integers(40, 120), st.booleans(), st.sampled_from(["", "16", "256"]),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_no_line_is_wider_than_the_terminal_but_one_to_paste(
    name: str, width: int, unicode: bool, palette: str, verbose: bool, explain: bool
) -> None:
    made = ANSWERS[name]()
    style = Style(width=width, unicode=unicode, palette=palette, verbose=verbose)
    text = render(FitView(made, style=style, explain=explain, measured=MEASURED if verbose else None))
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    to_paste = {line for change in made.changes for line in change.lines}
    for line in plain.splitlines():
        assert line.strip() in to_paste or columns(line) <= width or "  " in line[2:20], line
    assert unicode or plain.isascii()
    assert ("\x1b" in text) == bool(palette)
    assert all(line == line.rstrip() for line in plain.splitlines())


def test_colour_adds_nothing_that_is_not_there_without_it() -> None:
    for made in ANSWERS.values():
        coloured = shown(made(), palette="256")
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == shown(made())


def test_a_name_out_of_a_file_cannot_steer_the_terminal() -> None:
    evil = LLAMA._replace(architecture=LLAMA.architecture._replace(name="x\x1b[2Jy\u202e"), notes=("a\nb\x07",))
    text = shown(answer(model=evil), unicode=True)
    assert "\x1b" not in text and "\u202e" not in text and "\x07" not in text


# -- the bars ---------------------------------------------------------------------------------------------------------


def drawn(need: Need, available: int | None, width: int = 80) -> list[str]:
    return list(fit_bar.lines(need, available, Style(width=width), Workload()))


sizes = st.integers(0, 400 * GIB)


@pytest.mark.once
@settings(max_examples=80, deadline=None)
@given(st.lists(sizes, min_size=7, max_size=7), st.integers(0, 200 * GIB), st.one_of(st.none(), sizes))
def test_bars_follow_each_other_and_end_where_the_sum_ends(
    amounts: list[int], margin: int, available: int | None
) -> None:
    names = ("weights", "gradients", "optimizer", "activations", "logits", "cached", "context")
    terms = tuple(term(name, size) for name, size in zip(names, amounts) if size)
    device = Interval(sum(amounts), sum(amounts), sum(amounts) + margin)
    need = Need(terms, device, device, device, device, device, 1, "", ())
    rows = fit_bar.bars(need, Workload())
    assert [bar.start for bar in rows[:-1]] == [sum(t.bytes for t in terms[:i]) for i in range(len(terms))]
    assert rows[-1].size == sum(amounts) == sum(bar.size for bar in rows[:-1])
    lines = drawn(need, available)
    assert all(len(line) <= 80 for line in lines)
    if available is not None and device.high > available:
        # What there is no room for is marked as such, and never what there is room for.
        assert device.expected <= available or any("X" in line or "." in line for line in lines)
    else:
        assert not any("X" in line for line in lines)


def test_only_one_part_is_shown_once() -> None:
    need = INFERENCE_NEED._replace(terms=(term("weights", gib(16.31)),), device=interval(16.31, 16.31, 16.31))
    assert [line.split()[0] for line in drawn(need, 24 * GIB)] == ["GiB", "weights"]


# -- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "amount, text",
    [
        (0, "0.00 GiB (0.00 GB)"),
        (1, "<1 MiB (<1 MB)"),
        (20 << 20, "20 MiB (21 MB)"),
        (GIB, "1.00 GiB (1.07 GB)"),
        (10**9, "0.93 GiB (1.00 GB)"),
        (24 * GIB, "24.0 GiB (25.8 GB)"),
        (80 * 10**9, "74.5 GiB (80.0 GB)"),
        (1340 * GIB, "1,340 GiB (1,439 GB)"),
        (-3 * GIB, "-3.00 GiB (-3.22 GB)"),
    ],
)
def test_both_units_side_by_side(amount: int, text: str) -> None:
    assert both(amount) == text


@pytest.mark.parametrize(
    "low, high, text",
    [
        (GIB, 2 * GIB, "1.00 to 2.00 GiB (1.07 to 2.15 GB)"),
        (GIB, GIB, "1.00 GiB (1.07 GB)"),
        (10 << 20, 20 << 20, "10 to 20 MiB (10 to 21 MB)"),
    ],
)
def test_intervals(low: int, high: int, text: str) -> None:
    assert span(low, high) == text


@given(st.integers(-(1 << 50), 1 << 50))
def test_three_digits_say_the_amount(amount: int) -> None:
    text = number(amount, GIB)
    value = 0.0 if text == "<0.01" else float(text.replace(",", ""))
    assert abs(value - amount / GIB) <= max(0.0051, abs(amount / GIB) * 0.0051)


@pytest.mark.parametrize(
    "low, high, text",
    [(2.3, 32.1, "2.3 to 32 s"), (1.0, 1.0, "1 s"), (90, 240, "1.5 to 4 min"), (0.2, 0.2, "0.2 s")],
)
def test_durations(low: float, high: float, text: str) -> None:
    assert seconds(low, high) == text


@pytest.mark.parametrize(
    "level, per_gpu, expected",
    [
        (DEVICE, True, gib(16.31)),
        (RESERVED, True, gib(15.86)),
        (ALLOCATED, True, gib(15.76)),
        (ALLOCATED, False, gib(122)),
        (DEVICE, False, gib(16.31) * 8),
    ],
)
def test_the_number_that_is_asked_for(level: str, per_gpu: bool, expected: int) -> None:
    assert asked_need(FitView(on_eight(), level, per_gpu)).expected == expected

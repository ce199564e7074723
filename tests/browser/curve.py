"""Finding things on the drawn curve, as a person with a mouse would."""

from __future__ import annotations

import time

from playwright.sync_api import Locator, Page, TimeoutError, expect

_POINTS = """(gd, name) => {
  const found = []
  const box = gd.getBoundingClientRect()
  gd._fullData.forEach(trace => {
    if (trace.name !== name || trace.visible !== true) return
    const x = gd._fullLayout[trace.xaxis.replace("x", "xaxis")], y = gd._fullLayout[trace.yaxis.replace("y", "yaxis")]
    trace.x.forEach((value, i) => found.push({
      id: trace.customdata?.[i], x: box.x + x._offset + x.d2p(value), y: box.y + y._offset + y.d2p(trace.y[i]),
    }))
  })
  return found
}"""


def chart(page: Page) -> Locator:
    """The curve, drawn, on a page that is whole: while the rest is still coming, things move."""
    expect(page.get_by_role("table", name="Events of this run").get_by_role("cell").first).to_be_visible()
    found = page.get_by_role("figure", name="Speed-up by depth")
    expect(found.locator(".main-svg").first).to_be_visible()
    return found


def points(page: Page, name: str) -> list[dict[str, object]]:
    """Id and place on the screen of each point of a series."""
    found: list[dict[str, object]] = chart(page).evaluate(_POINTS, name)
    return found


def axis_range(page: Page, axis: str) -> list[float]:
    found: list[float] = chart(page).evaluate(
        f"gd => gd._fullLayout.{axis}.range.map(v => Math.round(v * 1000) / 1000)"
    )
    return found


def click_point(page: Page, name: str, number: int = -1) -> str:
    """Click a point, open its kernel and return its id.

    A click right after a drag can count as the second of a double click, and a chart that is being redrawn can move
    away under the mouse: a person would click again, and so does this.
    """
    for _ in range(5):
        point = points(page, name)[number]
        page.mouse.move(float(str(point["x"])), float(str(point["y"])))
        page.mouse.click(float(str(point["x"])), float(str(point["y"])))
        try:
            page.wait_for_url(f"**candidate={point['id']}*", timeout=4000)
        except TimeoutError:
            continue
        return str(point["id"])
    raise AssertionError(f"no click on {name} point {number} opened its kernel")


def zoom(page: Page, left: float, right: float) -> None:
    """Drag over a range of depths."""
    box = chart(page).evaluate(
        "(gd, ends) => { const b = gd.getBoundingClientRect(), x = gd._fullLayout.xaxis, y = gd._fullLayout.yaxis;"
        " return [...ends.map(v => b.x + x._offset + x.d2p(v)), b.y + y._offset + y._length / 2] }",
        [left, right],
    )
    page.mouse.move(box[0], box[2])
    page.mouse.down()
    page.mouse.move((box[0] + box[1]) / 2, box[2] + 3, steps=4)
    page.mouse.move(box[1], box[2] + 3, steps=4)
    page.mouse.up()
    deadline = time.monotonic() + 10
    while not _is_within(axis_range(page, "xaxis"), left, right):
        assert time.monotonic() < deadline, "the drag did not zoom"
        page.wait_for_timeout(50)
    # The next press must not count as the second of a double click, which would undo the zoom.
    page.wait_for_function("began => performance.now() - began > 300", arg=page.evaluate("performance.now()"))


def _is_within(shown: list[float], left: float, right: float) -> bool:
    return abs(shown[0] - left) < 0.5 and abs(shown[1] - right) < 0.5

// What a pointer is down on is not drawn anew before it is lifted: the click would go to a node that is gone.
const LONGEST_PRESS = 10_000  // longer, and its end was lost

function watchPress(node) {
  const press = { at: 0, draw: null }
  const lift = () => setTimeout(() => {  // after the click
    const draw = press.draw
    Object.assign(press, { at: 0, draw: null })
    draw?.()
  })
  node.addEventListener("pointerdown", () => {
    press.at = Date.now()
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, lift, { once: true })
  })
  return press
}

function onceLifted(node, draw) {
  const press = (node.press ??= watchPress(node))
  if (Date.now() - press.at < LONGEST_PRESS) press.draw = draw
  else draw()
}


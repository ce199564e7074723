// The curve of the film: a point for each kernel that has been timed by now, a cross for one that failed, the best so far, and
// what it is measured against.
const ROOM = { left: 34, right: 12, top: 18, bottom: 26 }, STEP = 0.5

const svg = (name, attributes, text) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name)
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value)
  if (text !== undefined) node.textContent = text
  return node
}

// `count` kernels are told by now; the last of them comes in as the picture does, if it `isNew`.
function drawCurve(place, film, count, isNew) {
  const { width, height } = place.getBoundingClientRect()
  if (!width || !height) return
  const kernels = film.scenes.filter(scene => scene.is_kernel)
  const top = Math.max(...film.lines.map(([, at]) => at), ...kernels.map(kernel => kernel.point?.[2] ?? 0)) * 1.06
  const x = i => ROOM.left + (width - ROOM.left - ROOM.right) * (i + 0.5) / kernels.length
  const y = at => height - ROOM.bottom - (height - ROOM.top - ROOM.bottom) * at / top
  const picture = svg("svg", { width, height, "aria-hidden": "true" })
  for (let at = 0; at <= top; at += STEP) {
    picture.append(
      svg("line", { class: "grid", x1: ROOM.left, x2: width - ROOM.right, y1: y(at), y2: y(at) }),
      svg("text", { class: "tick", x: ROOM.left - 6, y: y(at) + 4, "text-anchor": "end" }, `${at}×`))
  }
  // The limit is called by its name at the left, above the curve; the others at the right, below it, or above where the next
  // line is too near.
  film.lines.forEach(([name, at], i) => {
    const isNear = film.lines.some(([, below]) => below < at && y(below) - y(at) < 20)
    const place = i === film.lines.length - 1 ? { x: ROOM.left + 2, y: y(at) - 6 }
      : { x: width - ROOM.right - 2, y: y(at) + (isNear ? -5 : 13), "text-anchor": "end" }
    picture.append(
      svg("line", { class: `against a${i}`, x1: ROOM.left, x2: width - ROOM.right, y1: y(at), y2: y(at) }),
      svg("text", { class: `against a${i}`, ...place }, `${name} ${i ? at.toFixed(2) : 1}×`))
  })
  let best = 0
  kernels.forEach((kernel, i) => {
    const isLast = i === count - 1, at = kernel.point?.[0] ?? 0
    picture.append(svg("text", { class: isLast ? "tick now" : "tick", x: x(i), y: height - 8, "text-anchor": "middle" }, i + 1))
    if (i >= count) return
    const point = svg("g", { class: isLast && isNew ? "new" : "" })
    if (!kernel.point) {
      const [cx, cy] = [x(i), y(0) - 12]
      point.append(svg("path", { class: "cross", d: `M${cx - 5} ${cy - 5}l10 10m0-10l-10 10` }))
    } else {
      if (i) point.append(svg("path", { class: "best", pathLength: 1, d: `M${x(i - 1)} ${y(best)}H${x(i)}V${y(Math.max(best, at))}` }))
      point.append(
        svg("line", { class: "noise", x1: x(i), x2: x(i), y1: y(kernel.point[1]), y2: y(kernel.point[2]) }),
        svg("circle", { class: at > best ? "fastest" : "slower", cx: x(i), cy: y(at), r: isLast ? 6 : 4.5 }))
    }
    if (!kernel.point) point.append(svg("path", { class: "best", pathLength: 1, d: `M${x(i - 1)} ${y(best)}H${x(i)}` }))
    if (isLast) point.append(svg("text", {
      class: "value", x: Math.min(x(i), width - 26), y: (kernel.point ? y(kernel.point[2]) : y(0) - 14) - 9, "text-anchor": "middle" }, kernel.value))
    best = Math.max(best, at)
    picture.append(point)
  })
  place.setAttribute("aria-label", "Speed-up over eager PyTorch: " + (kernels.slice(0, count).map(kernel =>
    `${kernel.name} ${kernel.value}`).join(", ") || "no kernel yet") + ". " + film.lines.slice(1).map(([name, at]) => `${name} ${at.toFixed(2)}×`).join(", "))
  place.replaceChildren(picture)
}

// Lanes over time. A bar says what it is in the line below, when the pointer is on it or near it; every text is set as text.
function make(tag, className, text = "") {
  return Object.assign(document.createElement(tag), { className, textContent: text })
}

const percent = share => `${Math.round(1e4 * Math.min(1, Math.max(0, share))) / 100}%`

function bar([from, length, tone, text]) {
  const node = make("i", tone)
  node.style.left = percent(from)
  node.style.width = percent(length)
  node.dataset.text = text
  return node
}

function lane({ name, bars }) {
  const row = make("div", "lane"), track = make("div", "track")
  track.append(...bars.map(bar))
  row.append(make("span", "", name), track)
  return row
}

function ticks(marks) {
  const row = make("div", "lane"), line = make("div", "ticks")
  line.append(...marks.map(([at, text]) => {
    const mark = make("span", at < 0.05 ? "first" : at > 0.93 ? "last" : "", text)
    mark.style.left = percent(at)
    return mark
  }))
  row.append(make("span", ""), line)
  return row
}

const NEAR_PX = 6
function near(track, x) {
  const away = node => {
    const { left, right } = node.getBoundingClientRect()
    return Math.max(0, left - x, x - right)
  }
  return [...track.querySelectorAll("i:not(.idle)"), ...track.querySelectorAll("i.idle")]
    .map(node => [away(node), node]).filter(([px]) => px <= NEAR_PX).sort((a, b) => a[0] - b[0])[0]?.[1]
}

export default function ({ data, parentElement }) {
  const strip = parentElement.querySelector(".strip"), about = parentElement.querySelector(".about")
  strip.setAttribute("aria-label", data.name)
  strip.replaceChildren(...data.lanes.map(lane), ticks(data.ticks))
  const rest = () => {
    if (data.has_idle) about.replaceChildren(make("i", "key idle"), "device idle. Point at a bar: it says what it is.")
    else about.textContent = "Point at a bar: it says what it is."
  }
  const tell = event => {
    const track = event.target.closest?.(".track"), found = track && near(track, event.clientX)
    strip.querySelector(".told")?.classList.remove("told")
    if (!found) return rest()
    found.classList.add("told")
    about.textContent = found.dataset.text
  }
  strip.onpointermove = strip.onpointerdown = tell
  strip.onpointerleave = event => { if (event.pointerType === "mouse") tell({ target: strip }) }
  rest()
}

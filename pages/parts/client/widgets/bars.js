// Bars as a list; every text is set as text.
function make(tag, className, text) {
  const node = document.createElement(tag)
  node.className = className
  if (text) node.textContent = text
  return node
}

const percent = share => `${Math.round(1000 * Math.min(1, Math.max(0, share))) / 10}%`

export default function ({ data, parentElement }) {
  parentElement.querySelector(".title").textContent = data.title
  parentElement.querySelector(".legend").textContent = data.legend
  const list = parentElement.querySelector("ul")
  list.setAttribute("aria-label", data.title)
  list.replaceChildren(...data.bars.map(bar => {
    const item = make("li", bar.is_limit ? "limit" : "")
    const track = make("div", "track")
    track.setAttribute("aria-hidden", "true")
    const fill = make("div", "fill")
    fill.style.width = percent(bar.share)
    track.append(fill)
    if (bar.before !== null) {
      const mark = make("div", "before")
      mark.style.left = percent(bar.before)
      track.append(mark)
    }
    item.append(make("span", "label", bar.label), track, make("span", "text", bar.text))
    if (bar.note) item.append(make("span", "note", bar.note))
    return item
  }))
}

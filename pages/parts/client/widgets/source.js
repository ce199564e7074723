// Numbered source lines; each line comes escaped from the server. Marked lines say so to a reader as well. Where lines have
// heat, each has a margin.
export default function ({ data, parentElement }) {
  const box = parentElement.querySelector("pre")
  box.setAttribute("aria-label", data.name)
  box.style.counterReset = `line ${data.first - 1}`
  const marked = new Set(data.marked), isHeated = Object.keys(data.heat).length > 0
  box.innerHTML = data.lines.map((line, i) => {
    const is = marked.has(data.first + i), margin = isHeated ? heatCell(data.heat[data.first + i], "span") : ""
    return `<span class="line${is ? " marked" : ""}">${margin}${line}${is ? '<span class="word"> ◂ named by the compiler</span>' : ""}\n</span>`
  }).join("")
}

// Figures as a definition list; every text is set as text.
export default function ({ data, parentElement }) {
  const list = parentElement.querySelector("dl")
  list.setAttribute("aria-label", data.name)
  list.classList.toggle("strip", data.is_strip)
  list.replaceChildren(...data.items.map(item => {
    const box = document.createElement("div")
    if (item.about) box.title = item.about
    for (const [tag, className, text] of [["dt", "", item.label], ["dd", "value", item.value], ["dd", "note", item.note]]) {
      if (!text) continue
      const node = document.createElement(tag)
      node.className = className + (className === "value" && text.length > 12 ? " long" : "")
      node.textContent = text
      box.append(node)
    }
    return box
  }))
}

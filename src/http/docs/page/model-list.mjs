// The list of models, with a search. The chosen model is in the fragment of the address, so that it can be linked.
import { createElement, createInput } from './elements.mjs'

const GENERAL = 'General calls'

/** @returns {string | undefined} The model in the address; '' for the general calls; undefined if none is chosen. */
export function readChosenModel() {
  const [, name] = /^#\/(.*)$/.exec(location.hash) ?? []
  if (name === undefined) return undefined
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

/** @param {string} model */
export function describeChoice(model) {
  return model === '' ? GENERAL : model
}

/**
 * @param {string[]} models
 */
export function createModelList(models) {
  const { input, row } = createInput(`Search ${models.length} models`, {
    type: 'search',
    autocomplete: 'off',
    spellcheck: 'false',
  })
  const items = ['', ...models].map((model) => {
    const link = createElement('a', { href: `#/${encodeURIComponent(model)}` }, describeChoice(model))
    return { model, link, item: createElement('li', {}, link) }
  })
  const count = createElement('p', { role: 'status', class: 'count' })
  const search = () => {
    const words = input.value.toLowerCase().split(/\s+/)
    let shown = 0
    for (const { model, item } of items) {
      const name = describeChoice(model).toLowerCase()
      item.hidden = !words.every((word) => name.includes(word))
      if (!item.hidden && model !== '') shown++
    }
    count.textContent = input.value === '' ? '' : `${shown} of ${models.length} models`
  }
  const mark = () => {
    const chosen = readChosenModel()
    for (const { model, link } of items) {
      if (model === chosen) link.setAttribute('aria-current', 'page')
      else link.removeAttribute('aria-current')
    }
  }
  input.addEventListener('input', search)
  mark()
  const list = createElement('ul', {}, ...items.map(({ item }) => item))
  return { element: createElement('nav', { 'aria-label': 'Models' }, row, count, list), mark }
}

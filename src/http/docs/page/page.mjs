// The API reference: a login, the models that the user may see, and the operations of the chosen one.
import { createElement, createForm, createInput, describeFailure } from './elements.mjs'
import { createModelList, describeChoice, readChosenModel } from './model-list.mjs'
import { createSampleStore } from './sample-store.mjs'
import { loadSwaggerUi, showReference } from './swagger-view.mjs'
import * as session from './session.mjs'

const account = createElement('div', { class: 'account' })
const header = createElement('header', {}, createElement('h1', {}, 'API reference'), account)
const content = createElement('div', { class: 'content' })
document.body.append(header, content)

/** Shows the failure of an action in place of the content. @param {() => Promise<void>} action */
function run(action) {
  action().catch((error) => {
    content.replaceChildren(createElement('p', { role: 'alert', class: 'error' }, describeFailure(error)))
  })
}

async function start() {
  const user = await session.findUser()
  if (user === undefined) showLogin()
  else await showModels(user)
}

function showLogin() {
  const name = createInput('User name', { name: 'username', autocomplete: 'username', required: '' })
  const password = createInput('Password', {
    name: 'password',
    type: 'password',
    autocomplete: 'current-password',
    required: '',
  })
  const key = createInput('API key', {
    name: 'key',
    type: 'password',
    autocomplete: 'off',
    required: '',
  })
  const login = createForm({
    rows: [name.row, password.row],
    button: 'Log in',
    submit: async () => {
      await session.logIn(name.input.value, password.input.value)
      await start()
    },
  })
  const useKey = createForm({
    rows: [key.row],
    button: 'Use the key',
    submit: async () => {
      await session.enterKey(key.input.value)
      await start()
    },
  })
  account.replaceChildren()
  content.replaceChildren(
    createElement(
      'main',
      { class: 'login' },
      createElement('h2', {}, 'Log in'),
      login,
      createElement('h2', {}, 'Or use an API key'),
      useKey,
    ),
  )
  name.input.focus()
}

/** @param {string} user */
async function showModels(user) {
  const { data } = await session.callService('/ws/meta/models')
  const names = /** @type {string[]} */ (data)
  const models = createModelList(names)
  const main = createElement('main')
  showAccount(user)
  content.replaceChildren(models.element, main)
  const showChoice = () => {
    models.mark()
    run(() => showModel(main, names))
  }
  onhashchange = showChoice
  showChoice()
}

/** Counts choices, because the documents of two quick choices can arrive in any order. */
let choices = 0

/**
 * @param {HTMLElement} main
 * @param {string[]} models
 */
async function showModel(main, models) {
  const choice = ++choices
  const model = readChosenModel()
  if (model === undefined) {
    main.replaceChildren(
      createElement('p', {}, 'Choose a model, or the general calls: logins, batches, the change feed.'),
    )
    return
  }
  const heading = createElement('h2', {}, describeChoice(model))
  const place = createElement('div', {}, createElement('p', { role: 'status' }, 'Loading …'))
  main.replaceChildren(heading, place)
  try {
    const [openapi, samples] = await Promise.all([
      session.callService(`/ws/openapi.json?model=${encodeURIComponent(model)}`),
      createSampleStore(() => (model === '' ? session.findAnySample(models) : session.findSample(model))),
    ])
    if (choice !== choices) return
    await showReference(place, /** @type {import('./request-values.mjs').ApiDocument} */ (openapi), samples)
  } catch (error) {
    place.replaceChildren(createElement('p', { role: 'alert', class: 'error' }, describeFailure(error)))
  }
}

/** @param {string} user */
function showAccount(user) {
  const leave = createElement('button', { type: 'button' }, session.hasKey() ? 'Forget the key' : 'Log out')
  leave.addEventListener('click', () => {
    run(async () => {
      await session.logOut()
      onhashchange = null
      await start()
    })
  })
  account.replaceChildren(createElement('span', {}, user), leave, createKeyHint())
}

/** Snippets need a key. A user with a session can create one here. */
function createKeyHint() {
  const line = createElement('code', {}, 'export VERSO_KEY=…')
  const hint = createElement('p', { class: 'key' }, 'Snippets take an API key from the environment: ', line)
  if (session.hasKey()) return hint
  const create = createElement('button', { type: 'button' }, 'Create a key for a day')
  create.addEventListener('click', () => {
    session.createSnippetKey().then(
      (key) => {
        line.textContent = `export VERSO_KEY='${key}'`
        create.remove()
      },
      (error) => {
        line.textContent = describeFailure(error)
      },
    )
  })
  hint.append(' ', create)
  return hint
}

run(start)
// Its large script arrives while the user logs in or chooses. A failure is shown when a model is chosen.
loadSwaggerUi().catch(() => {})

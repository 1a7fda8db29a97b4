// The pages behind one-time links, where a user sets a password: /reset, and /setup for the first administrator. The forms post to their own
// URL, which contains the token. After a form is saved, the browser is redirected to a page that says what is next.
import { timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { MIN_PASSWORD_CHARACTERS } from '../../model/catalog/auth-models.js'
import { isObject } from '../../model/values/value.js'
import { ensureFirstAdmin, lacksAdministrator } from '../../service/auth/accounts.js'
import { resetPassword, findResetLinkUser } from '../../service/auth/new-password.js'
import { hashToken } from '../../service/auth/tokens.js'
import { acceptsHtml, escapeHtml, sendHtmlPage } from '../assets/page.js'
import { sendData, sendRedirect } from '../response/send.js'
import { STATUS_BY_KIND } from '../route/error-status.js'
import { buildBaseUrl } from '../route/origin.js'
import { documented, type Resource, type RouteContext } from '../route/resource.js'
import type { HttpSettings } from '../settings.js'
import { describeLinkPage } from './session-docs.js'

/** The page that follows a saved form has this parameter instead of a token. */
const DONE_PARAMETER = 'done'

export function createResetResource({ app, guards, settings }: RouteContext): Resource {
  return createPageResource({
    path: '/reset',
    docs: describeLinkPage('Reset', 'Set a new password by a one-time link', ['password']),
    guards: [guards.requireSameSite, guards.refuseThrottled],
    form: { title: 'Set a new password', fields: [PASSWORD_FIELD], buttonLabel: 'Set the password' },
    done: {
      title: 'The password is set',
      text: 'Sign in with it. All earlier sessions of the account have ended.',
    },
    settings,
    requireLink: async (request) => {
      await findResetLinkUser(app, readLinkToken(request), request.ip)
    },
    save: async ({ password }, request) => resetPassword(app, readLinkToken(request), password, request.ip),
  })
}

/** The setup link expires as soon as an administrator exists. */
export function createSetupResource({ app, guards, settings }: RouteContext, token: string): Resource {
  return createPageResource({
    path: '/setup',
    docs: describeLinkPage('Setup', 'Create the first administrator', ['username', 'password']),
    guards: [guards.requireSameSite, guards.refuseThrottled],
    form: {
      title: 'Create the first administrator',
      fields: [USERNAME_FIELD, PASSWORD_FIELD],
      buttonLabel: 'Create the account',
    },
    done: {
      title: 'The administrator is ready',
      text: 'Sign in with the new account. Administrators may read and change everything, and create users and roles.',
    },
    settings,
    requireLink: async (request) => {
      const sent = readLinkToken(request)
      const isValid = typeof sent === 'string' && isSameToken(sent, token)
      if (!isValid || !(await lacksAdministrator(app))) throw createUsedLinkError()
    },
    save: async ({ username, password }) => {
      if (!(await ensureFirstAdmin(app, username ?? '', password ?? ''))) throw createUsedLinkError()
    },
  })
}

function createUsedLinkError(): VersoError {
  return new VersoError(
    'not-found',
    'This link is wrong, or an administrator exists already. Restart the service for a new link, or ask an administrator',
  )
}

/** Hashes first, because timingSafeEqual needs texts of the same length. */
function isSameToken(token: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(hashToken(token)), Buffer.from(hashToken(expected)))
}

interface FormField {
  readonly name: string
  readonly label: string
  /** Attributes of the input, as HTML. */
  readonly attributes: string
  readonly initial?: string
  /** The page never contains a secret, not even the one that was sent. */
  readonly isSecret?: boolean
}

const USERNAME_FIELD: FormField = {
  name: 'username',
  label: 'User name',
  attributes: 'autocomplete="username" required',
  initial: 'admin',
}

const PASSWORD_FIELD: FormField = {
  name: 'password',
  label: `Password, at least ${MIN_PASSWORD_CHARACTERS} characters`,
  attributes: `type="password" minlength="${MIN_PASSWORD_CHARACTERS}" autocomplete="new-password" required`,
  isSecret: true,
}

interface FormPage {
  readonly title: string
  readonly fields: readonly FormField[]
  readonly buttonLabel: string
}

type FormValues = Readonly<Record<string, string>>

interface PageResource {
  readonly path: string
  readonly docs: ReturnType<typeof describeLinkPage>
  readonly guards: NonNullable<Resource['writeGuards']>
  readonly form: FormPage
  readonly done: { readonly title: string; readonly text: string }
  readonly settings: HttpSettings
  /** Throws unless the link of the request is valid. */
  readonly requireLink: (request: FastifyRequest) => Promise<void>
  readonly save: (values: FormValues, request: FastifyRequest) => Promise<void>
}

function createPageResource({
  path,
  docs,
  guards,
  form,
  done,
  settings,
  requireLink,
  save,
}: PageResource): Resource {
  const { basePath } = settings
  return {
    path,
    guards: [],
    writeGuards: guards,
    isPage: true,
    handlers: {
      GET: documented(docs.show, async (request, reply) => {
        if (DONE_PARAMETER in (request.query as object)) {
          const bodyHtml = renderNextSteps(done.text, basePath, buildBaseUrl(request, settings))
          return sendHtmlPage(reply, { title: done.title, bodyHtml, basePath })
        }
        await requireLink(request)
        return sendHtmlPage(reply, { title: form.title, bodyHtml: renderForm(form, {}), basePath })
      }),
      POST: documented(docs.submit, async (request, reply) => {
        await requireLink(request)
        const sent = isObject(request.body) ? request.body : {}
        try {
          await save(readFormValues(form, sent), request)
        } catch (error) {
          if (!acceptsHtml(request) || !(error instanceof VersoError) || !error.details.errors) throw error
          const [status] = STATUS_BY_KIND[error.kind]
          const page = { title: form.title, bodyHtml: renderForm(form, sent, error), basePath }
          return sendHtmlPage(reply.code(status), page, true)
        }
        return acceptsHtml(request)
          ? sendRedirect(reply, `${basePath}${path}?${DONE_PARAMETER}`)
          : sendData(reply, [])
      }),
    },
  }
}

function readLinkToken(request: FastifyRequest): unknown {
  return (request.query as Readonly<Record<string, unknown>>)['token']
}

function readFormValues({ fields }: FormPage, sent: Readonly<Record<string, unknown>>): FormValues {
  const missing = fields.filter(({ name }) => typeof sent[name] !== 'string')
  if (missing.length === 0) return Object.fromEntries(fields.map(({ name }) => [name, String(sent[name])]))
  const names = fields.map(({ name }) => name).join(' and ')
  throw new VersoError('bad-request', `Send ${names}; nothing was changed`, {
    errors: Object.fromEntries(missing.map(({ name }) => [name, 'is required'])),
  })
}

function renderForm(
  { fields, buttonLabel }: FormPage,
  sent: Readonly<Record<string, unknown>>,
  rejected?: VersoError,
): string {
  const errors = rejected?.details.errors ?? {}
  const firstWrong = fields.find(({ name }) => errors[name] !== undefined)
  const inputs = fields.map((field) => {
    const { name, label, attributes, initial = '', isSecret = false } = field
    const error = errors[name]
    const typed = sent[name]
    const value = isSecret ? '' : ` value="${escapeHtml(typeof typed === 'string' ? typed : initial)}"`
    const state = error === undefined ? '' : ` aria-invalid="true" aria-describedby="${name}-error"`
    const focus = field === firstWrong ? ' autofocus' : ''
    const note =
      error === undefined
        ? ''
        : `<p class="error field-error" id="${name}-error">${escapeHtml(`The ${name} ${error}.`)}</p>`
    return `<label>${escapeHtml(label)}\n<input name="${name}"${value} ${attributes}${state}${focus}></label>${note}`
  })
  // An error of a field that the form does not have is only in the message.
  const reason = firstWrong || !rejected ? '' : ` ${escapeHtml(rejected.message)}.`
  const summary = rejected
    ? `<p class="error" role="alert">Nothing was changed. Correct the following and try again.${reason}</p>\n`
    : ''
  return `${summary}<form method="post">\n${inputs.join('\n')}\n<button>${escapeHtml(buttonLabel)}</button>\n</form>`
}

/** A URL from an unusual `Host` header is not shown as part of a command to paste. */
const PASTEABLE_URL = /^https?:\/\/[\w.:[\]/~-]+$/

function renderNextSteps(text: string, basePath: string, url: string): string {
  const login = `curl -c cookies.txt -d '{"username":"…","password":"…"}' \\\n  '${url}/callback'`
  const list = `curl -b cookies.txt '${url}/ws/meta/models'`
  const commands = PASTEABLE_URL.test(url)
    ? `\n<p>Or use the API from a shell:</p>\n<pre>${escapeHtml(`${login}\n${list}`)}</pre>`
    : ''
  const link = `<a class="button" href="${escapeHtml(basePath)}/">Open Verso</a>`
  return `<p>${escapeHtml(text)}</p>\n${link}${commands}`
}

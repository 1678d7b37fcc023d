import type { BrowserContext, ConsoleMessage, Request, Response } from 'playwright-core'

/** What pages have done that a page of the portal must not do. */
export interface Faults {
  /** From here on, what fits is as it should be: a pattern for lines such as `answer 401 GET /api/v1/auth/me`. */
  allow: (...patterns: RegExp[]) => void
  /** Forgets what has happened and what was allowed: another test begins. */
  forget: () => void
  /** One line for each that was not allowed, in the order in which they happened. */
  list: () => string[]
  /** Throws with all of them, if there is one. */
  expectNone: () => void
}

/** The answer behind it is counted by itself, with its method and path. */
const tellsOfAnAnswer = /^Failed to load resource: the server responded with a status of/

/** Runs in every frame before anything of the page does. `__xss` is what hostile texts of the tests set when they run. */
function observe(): void {
  const page: any = globalThis
  page.document.addEventListener('securitypolicyviolation', (event: any) => {
    page.tellOfFault(
      `policy ${event.effectiveDirective} refuses ${event.blockedURI || 'inline'} ${event.sample}`.trim(),
    )
  })
  Object.defineProperty(page, '__xss', {
    set(value) {
      page.tellOfFault(`script of a text ran: ${String(value)}`)
    },
  })
}

/** Watches all pages of a context, those that open by themselves too, from before the first is loaded. */
export async function watch(context: BrowserContext, origin: string): Promise<Faults> {
  const found: string[] = []
  const allowed: RegExp[] = []
  const add = (fault: string) => {
    if (!allowed.some((pattern) => pattern.test(fault))) found.push(fault)
  }
  await context.exposeBinding('tellOfFault', (_source, fault: string) => add(fault))
  await context.addInitScript(observe)
  follow(context, origin, add)
  return {
    allow: (...patterns) => void allowed.push(...patterns),
    forget: () => {
      found.length = 0
      allowed.length = 0
    },
    list: () => [...found],
    expectNone: () => {
      if (found.length > 0) throw new Error(`The page was not quiet:\n${found.map((line) => `- ${line}`).join('\n')}`)
    },
  }
}

function follow(context: BrowserContext, origin: string, add: (fault: string) => void): void {
  const at = (url: string) => (url.startsWith(`${origin}/`) ? url.slice(origin.length) : url)
  const named = (request: Request) => `${request.method()} ${at(request.url())}`
  context.on('dialog', (dialog) => {
    add(`dialog ${dialog.type()}: ${dialog.message()}`)
    dialog.dismiss().catch(() => undefined)
  })
  context.on('weberror', (error) => add(`page error: ${String(error.error())}`))
  context.on('console', (message: ConsoleMessage) => {
    if (message.type() !== 'error' || tellsOfAnAnswer.test(message.text())) return
    add(`console error: ${message.text()} (${at(message.location().url)})`)
  })
  context.on('request', (request) => {
    if (/^(https?|wss?):/.test(request.url()) && new URL(request.url()).origin !== origin)
      add(`elsewhere ${named(request)}`)
  })
  context.on('requestfailed', (request) => {
    const why = request.failure()?.errorText ?? ''
    // A page that is left, and a question that nobody waits for any longer, end their requests.
    if (why !== 'net::ERR_ABORTED') add(`failed ${named(request)}: ${why}`)
  })
  context.on('response', (response: Response) => {
    if (response.status() >= 400) add(`answer ${response.status()} ${named(response.request())}`)
  })
  context.on('page', (page) => {
    page.opener().then(
      (opener) => opener && add(`window opened: ${at(page.url())}`),
      () => undefined,
    )
  })
}

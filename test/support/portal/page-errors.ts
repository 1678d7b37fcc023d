import type { BrowserContext, ConsoleMessage, Request, Response } from 'playwright-core'

export interface PageErrors {
  /** Ignores matching errors from now on. Patterns match lines such as `response 401 GET /api/v1/auth/me`. */
  allow: (...patterns: RegExp[]) => void
  reset: () => void
  list: () => string[]
  expectNone: () => void
}

/** Chromium logs failed responses to the console too; they are recorded with method and path instead. */
const responseError = /^Failed to load resource: the server responded with a status of/

/** Runs in every frame before any script of the page. The payloads of the tests set `__xss` when they execute. */
function observeFrame(): void {
  const page: any = globalThis
  page.document.addEventListener('securitypolicyviolation', (event: any) => {
    page.reportPageError(
      `policy ${event.effectiveDirective} blocked ${event.blockedURI || 'inline'} ${event.sample}`.trim(),
    )
  })
  Object.defineProperty(page, '__xss', {
    set(value) {
      page.reportPageError(`injected script executed: ${String(value)}`)
    },
  })
}

/** Records the errors of all pages, including pop-ups. Call it before the first page opens. */
export async function recordPageErrors(context: BrowserContext, origin: string): Promise<PageErrors> {
  const errors: string[] = []
  const allowedPatterns: RegExp[] = []
  const add = (error: string) => {
    if (!allowedPatterns.some((pattern) => pattern.test(error))) errors.push(error)
  }
  await context.exposeBinding('reportPageError', (_source, error: string) => add(error))
  await context.addInitScript(observeFrame)
  listen(context, origin, add)
  return {
    allow: (...patterns) => void allowedPatterns.push(...patterns),
    reset: () => {
      errors.length = 0
      allowedPatterns.length = 0
    },
    list: () => [...errors],
    expectNone: () => {
      if (errors.length > 0) throw new Error(`The page caused errors:\n${errors.map((line) => `- ${line}`).join('\n')}`)
    },
  }
}

function listen(context: BrowserContext, origin: string, add: (error: string) => void): void {
  const shorten = (url: string) => (url.startsWith(`${origin}/`) ? url.slice(origin.length) : url)
  const describe = (request: Request) => `${request.method()} ${shorten(request.url())}`
  context.on('dialog', (dialog) => {
    // The browser asks for confirmation before it unloads a page with unsaved input.
    if (dialog.type() === 'beforeunload') return void dialog.accept().catch(() => undefined)
    add(`dialog ${dialog.type()}: ${dialog.message()}`)
    return void dialog.dismiss().catch(() => undefined)
  })
  context.on('weberror', (error) => add(`page error: ${String(error.error())}`))
  context.on('console', (message: ConsoleMessage) => {
    if (message.type() !== 'error' || responseError.test(message.text())) return
    add(`console error: ${message.text()} (${shorten(message.location().url)})`)
  })
  context.on('request', (request) => {
    if (/^(https?|wss?):/.test(request.url()) && new URL(request.url()).origin !== origin)
      add(`external ${describe(request)}`)
  })
  context.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText ?? ''
    // Navigation and cancelled queries abort their requests.
    if (reason !== 'net::ERR_ABORTED') add(`failed ${describe(request)}: ${reason}`)
  })
  context.on('response', (response: Response) => {
    if (response.status() >= 400) add(`response ${response.status()} ${describe(response.request())}`)
  })
  context.on('page', (page) => {
    page.opener().then(
      (opener) => opener && add(`window opened: ${shorten(page.url())}`),
      () => undefined,
    )
  })
}

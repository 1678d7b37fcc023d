import type { GatewayHandler } from '@platform/http/response'
import { jsonRequest, type TestResponse, send } from './request.ts'

export class Browser {
  readonly jar = new Map<string, Map<string, string>>()
  readonly visited: URL[] = []
  private readonly portal: string
  private readonly handler: GatewayHandler

  constructor(portal: string, handler: GatewayHandler) {
    this.portal = portal
    this.handler = handler
  }

  async follow(address: string, until: RegExp): Promise<URL> {
    let url = new URL(address)
    for (let hop = 0; hop < 15; hop++) {
      this.visited.push(url)
      if (until.test(url.href)) return url
      const { status, location } = await this.open(url)
      if (location === undefined) throw new Error(`${url.href} responded with ${status}, which is not a redirect.`)
      url = new URL(location, url)
    }
    throw new Error(`The redirects did not end: ${this.visited.join(' ')}`)
  }

  async open(url: URL): Promise<{ status: number; location: string | undefined }> {
    if (url.origin === this.portal) {
      const response = await this.send({ target: url.pathname + url.search })
      return { status: response.status, location: response.headers['location'] }
    }
    const response = await fetch(url, { redirect: 'manual', headers: this.cookies(url.origin) })
    await response.text()
    this.keep(url.origin, response.headers.getSetCookie())
    return { status: response.status, location: response.headers.get('location') ?? undefined }
  }

  async send(sent: { target: string } & Partial<ReturnType<typeof jsonRequest>>): Promise<TestResponse> {
    const response = await send(this.handler, { ...sent, headers: { ...sent.headers, ...this.cookies(this.portal) } })
    this.keep(this.portal, response.cookies)
    return response
  }

  post = (target: string, body: unknown): Promise<TestResponse> => this.send(jsonRequest(target, body))

  private cookies(origin: string): Record<string, string> {
    const pairs = [...(this.jar.get(origin) ?? [])].map(([name, value]) => `${name}=${value}`)
    return pairs.length === 0 ? {} : { cookie: pairs.join('; ') }
  }

  private keep(origin: string, cookies: readonly string[]): void {
    const jar = this.jar.get(origin) ?? new Map<string, string>()
    for (const cookie of cookies) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      if (value === '') jar.delete(name)
      else jar.set(name, value)
    }
    this.jar.set(origin, jar)
  }
}

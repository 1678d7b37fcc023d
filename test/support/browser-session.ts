import type { GatewayHandler } from '@platform/http/response'
import { jsonRequest, type TestResponse, send, type TestRequest } from './request.ts'

export const publicPortalHeaders = {
  host: 'platform.example.com',
  origin: 'https://platform.example.com',
  'sec-fetch-site': 'same-origin',
}
export const localPortalHeaders = {
  host: '127.0.0.1:8080',
  origin: 'http://127.0.0.1:8080',
  'sec-fetch-site': 'same-origin',
}

export class BrowserSession {
  readonly cookies: Map<string, string>
  readonly readHeaders: Record<string, string>
  readonly writeHeaders: Record<string, string>

  constructor(portal: Record<string, string>, cookies: ReadonlyMap<string, string> = new Map()) {
    this.cookies = new Map(cookies)
    const { origin: _, ...readHeaders } = portal
    this.readHeaders = readHeaders
    this.writeHeaders = portal
  }

  async send(handler: GatewayHandler, { method = 'GET', headers, ...sent }: TestRequest): Promise<TestResponse> {
    const portalHeaders = method === 'GET' || method === 'HEAD' ? this.readHeaders : this.writeHeaders
    const response = await send(handler, {
      ...sent,
      method,
      headers: { ...portalHeaders, ...this.cookieHeader(), ...headers },
    })
    for (const cookie of response.cookies) this.keep(cookie)
    return response
  }

  post = (handler: GatewayHandler, target: string, body: unknown): Promise<TestResponse> =>
    this.send(handler, jsonRequest(target, body))

  cookieHeader(): Record<string, string> {
    const pairs = [...this.cookies].map(([name, value]) => `${name}=${value}`)
    return pairs.length === 0 ? {} : { cookie: pairs.join('; ') }
  }

  private keep(cookie: string): void {
    const [, name = '', value = '', seconds = ''] = /^([^=]+)=([^;]*);.*Max-Age=(\d+)/.exec(cookie) ?? []
    if (Number(seconds) > 0) this.cookies.set(name, value)
    else this.cookies.delete(name)
  }
}

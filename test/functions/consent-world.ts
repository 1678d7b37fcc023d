import { handler } from '../../functions/identity.ts'
import { expect } from 'vitest'
import { cloud } from '../core/support/identity.ts'
import { jsonRequest, type TestResponse, send } from '../support/request.ts'
import { administrator } from '../support/fixtures.ts'
import { personOf } from './person.ts'

/** Requests for consent and what comes back, as browsers bring it. */

export const path = '/api/v1/platform/identity'
export const back = `${path}/consent-callback`
export const settings = `${administrator.publicUrl}/settings/identity`
export const admin = await personOf('PlatformAdmin')

export const configure = async (request: object): Promise<any> =>
  (await send(handler, jsonRequest(`${path}/providers`, request, admin.headers))).json
export const ask = (id: string) => send(handler, jsonRequest(`${path}/providers/${id}/consent`, '', admin.headers))
export const statusOf = async (id: string): Promise<string> => {
  const { json } = await send(handler, { target: `${path}/providers`, headers: admin.headers })
  return json.items.find((each: any) => each.id === id).status
}

export type Parameters = Record<string, string>
export type Headers = Record<string, string>

export const byGet = (parameters: Parameters, headers: Headers = {}) =>
  send(handler, { target: `${back}?${new URLSearchParams(parameters).toString()}`, headers })
export const post = (body: string, headers: Headers = {}, search = '') =>
  send(handler, {
    method: 'POST',
    target: `${back}${search}`,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body,
  })
export const byForm = (parameters: Parameters, headers: Headers = {}) =>
  post(new URLSearchParams(parameters).toString(), headers)
const byPostedQuery = (parameters: Parameters, headers: Headers = {}) =>
  send(handler, { method: 'POST', target: `${back}?${new URLSearchParams(parameters).toString()}`, headers })

export const ways = { GET: byGet, 'POST with a form': byForm, 'POST with a query': byPostedQuery }

/** Where the browser is sent, taken apart. Anywhere else than to the settings fails. */
export function sentTo({ status, headers, text }: TestResponse): Parameters {
  expect([status, text]).toEqual([302, ''])
  const location = new URL(headers['location'] ?? '')
  expect(location.origin + location.pathname).toBe(settings)
  expect(headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  return Object.fromEntries(location.searchParams)
}

/** The provider that consent was asked of, and the state of the newest request. */
export let id = ''
export let state = ''

export async function askAgain(): Promise<void> {
  state = new URL((await ask(id)).json.url).searchParams.get('state') ?? ''
}

/** A provider that was asked for consent just now. */
export async function askCloud(): Promise<void> {
  ;({ id } = await configure(cloud))
  await askAgain()
}

export const granted = () => ({ state, tenant: cloud.tenantId, admin_consent: 'True', scope: 'openid' })

export const expectUnauthenticated = async (call: Promise<TestResponse>) => {
  const { status, json, headers } = await call
  expect([status, json.error]).toEqual([401, 'unauthenticated'])
  expect(headers).not.toHaveProperty('location')
}

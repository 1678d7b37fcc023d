import type { components, paths } from '@platform/contract/openapi-types'
import createClient from 'openapi-fetch'
import { ApiError } from './api-error.ts'
import { fetchInSession } from './session.ts'

/** The shapes that the API speaks of, by their names. */
export type Schemas = components['schemas']

/** The platform's API, typed by the OpenAPI document that it publishes. The browser's cookies say who calls. */
export const api = createClient<paths>({ baseUrl: location.origin, fetch: fetchInSession })

interface Answered<Data> {
  data?: Data
  error?: unknown
  response: Response
}

/** The body of an answer; throws an `ApiFault` for any other than a success, or where there is none. */
export async function unwrap<Data>(call: Promise<Answered<Data>>): Promise<NonNullable<Data>> {
  const data = await expectNoBody(call)
  // Only what answers without a body has none: such calls are told, not asked.
  if (data === undefined || data === null) throw new ApiError(204, {})
  return data
}

/** As `ask`, for calls whose answer may have no body. */
export async function expectNoBody<Data>(call: Promise<Answered<Data>>): Promise<Data | undefined> {
  const { data, error, response } = await call.catch((cause: unknown) => {
    throw ApiError.unreachable(cause)
  })
  if (!response.ok) throw new ApiError(response.status, error, response.headers)
  return data
}

import type { components, paths } from '@platform/contract/openapi-types'
import createClient from 'openapi-fetch'
import { ApiError } from './api-error.ts'
import { fetchInSession } from './session.ts'

export type Schemas = components['schemas']

/** The platform's API, typed by its OpenAPI document. The browser's cookies authenticate the requests. */
export const api = createClient<paths, 'application/json'>({ baseUrl: location.origin, fetch: fetchInSession })

interface ApiResult<Data> {
  data?: Data
  error?: unknown
  response: Response
}

/**
 * Returns the body of a successful response. Throws `ApiError` for an error response, a missing response or an empty
 * body.
 */
export async function unwrap<Data>(call: Promise<ApiResult<Data>>): Promise<NonNullable<Data>> {
  const data = await expectNoBody(call)
  // Use `expectNoBody` for responses that may be empty.
  if (data === undefined || data === null) throw new ApiError(204, {})
  return data
}

/** Like `unwrap`, for responses that may have no body. */
export async function expectNoBody<Data>(call: Promise<ApiResult<Data>>): Promise<Data | undefined> {
  const { data, error, response } = await call.catch((cause: unknown) => {
    throw ApiError.unreachable(cause)
  })
  if (!response.ok) throw new ApiError(response.status, error, response.headers)
  return data
}

export interface ApiResponse {
  method: string
  path: string
  status: number
  headers: Headers
  text: string
  body: any
}

export const describeResponse = ({ method, path, status, text }: ApiResponse): string =>
  `${method} ${path} returned ${status} ${text.slice(0, 400)}`

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns the body of a response with this status and error code. Throws for any other response. */
export function expectStatus(response: ApiResponse, status: number, code?: string): any {
  const isExpected = response.status === status && (code === undefined || response.body?.error === code)
  if (!isExpected) throw new Error(`Expected ${[status, code].join(' ')}: ${describeResponse(response)}`)
  return response.body
}

/** Returns the fields of a `validation_failed` error: part of the request and JSON Pointer. */
export function invalidFields(response: ApiResponse): string[] {
  const { details = [] } = expectStatus(response, 400, 'validation_failed')
  return [...new Set<string>(details.map(({ in: part, path }: any) => `${part} ${path}`))]
}

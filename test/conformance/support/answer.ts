export interface Answer {
  method: string
  path: string
  status: number
  headers: Headers
  text: string
  body: any
}

export const show = ({ method, path, status, text }: Answer): string =>
  `${method} ${path} answered ${status} ${text.slice(0, 400)}`

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns the body of a response with this status and error code. Throws for any other response. */
export function expectStatus(answer: Answer, status: number, code?: string): any {
  const isExpected = answer.status === status && (code === undefined || answer.body?.error === code)
  if (!isExpected) throw new Error(`Expected ${[status, code].join(' ')}: ${show(answer)}`)
  return answer.body
}

/** The fields of a `validation_failed` error: part of the request and JSON Pointer. */
export function invalidFields(answer: Answer): string[] {
  const { details = [] } = expectStatus(answer, 400, 'validation_failed')
  return [...new Set<string>(details.map(({ in: part, path }: any) => `${part} ${path}`))]
}

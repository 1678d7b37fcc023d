/** A response before it is put into a gateway's words. Header names are lower-case. */
export interface HttpResponse {
  status: number
  headers: Readonly<Record<string, string>>
  /** One `Set-Cookie` each. */
  cookies?: readonly string[]
  body: string | Uint8Array | null
}

// oxlint-disable-next-line no-control-regex
const unsendable = /[^\t\u0020-\u007e\u0080-\u00ff]/

const statusesWithoutBody = new Set([204, 205, 304])

/**
 * Makes a reply. Throws for a header that would not arrive as it is, for it may end where another one begins, and for a body
 * where there is none.
 */
export function httpResponse(
  status: number,
  body: HttpResponse['body'],
  headers: Readonly<Record<string, string>>,
  cookies: readonly string[] = [],
): HttpResponse {
  const fields = [...Object.entries(headers), ...cookies.map((cookie) => ['set-cookie', cookie] as const)]
  const broken = fields.find(([, value]) => unsendable.test(value))
  if (broken !== undefined) throw new Error(`The header ${broken[0]} cannot be sent.`)
  if (body !== null && statusesWithoutBody.has(status)) throw new Error(`An answer with ${status} has no body.`)
  return { status, headers, cookies, body }
}

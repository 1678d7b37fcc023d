/** A response before it is put into a gateway's words. Header names are lower-case. */
export interface Reply {
  status: number
  headers: Readonly<Record<string, string>>
  body: string | Uint8Array | null
}

// oxlint-disable-next-line no-control-regex
const unsendable = /[^\t\u0020-\u007e\u0080-\u00ff]/

/** Makes a reply. Throws for a header that would not arrive as it is: it may end where another one begins. */
export function reply(status: number, body: Reply['body'], headers: Readonly<Record<string, string>>): Reply {
  const broken = Object.entries(headers).find(([, value]) => unsendable.test(value))
  if (broken !== undefined) throw new Error(`The header ${broken[0]} cannot be sent.`)
  return { status, headers, body }
}

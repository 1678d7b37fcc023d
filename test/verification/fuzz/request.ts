import type { Schema } from '../../conformance/support/document.ts'

export interface Operation {
  name: string
  method: string
  template: string
  parameters: readonly { in: string; name: string; schema: Schema }[]
  body: Schema | undefined
  isBodyOptional: boolean
}

export interface Wire {
  path: string
  /** Without `?`; may be empty. */
  query: string
  headers: Readonly<Record<string, string>>
  body?: string | Uint8Array
}

export interface ValidRequest {
  params: Readonly<Record<string, string>>
  query: Readonly<Record<string, string>>
  headers: Readonly<Record<string, string>>
  body: unknown
}

export const jsonHeaders = { 'content-type': 'application/json' }

export const expandPath = (template: string, valueOf: (name: string) => string): string =>
  template.replaceAll(/\{(\w+)\}/g, (_, name: string) => valueOf(name))

export const percentEncode = (text: string): string => encodeURIComponent(text.toWellFormed())

/** JSON texts that JSON.stringify cannot produce. A value `raw-json:N` is serialised as the text at index N. */
export const rawTexts = ['1e400', '-1e400', '9007199254740993', '12345678901234567890', '1E-400', '-0', '1.0', '0.1e1']

export const serialise = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/"raw-json:(\d)"/g, (_, index: string) => rawTexts[Number(index)] ?? '0')

export const toWire = ({ template }: Operation, { params, query, headers, body }: ValidRequest): Wire => ({
  path: expandPath(template, (name) => percentEncode(params[name] ?? '')),
  query: new URLSearchParams(query).toString(),
  headers: body === undefined ? headers : { ...jsonHeaders, ...headers },
  ...(body !== undefined && { body: serialise(body) }),
})

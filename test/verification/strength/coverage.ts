import { readFileSync } from 'node:fs'
import {
  isReference,
  type OpenApi,
  operationOf,
  operationsOf,
  resolve,
  type ResponseObject,
} from '../../conformance/support/document.ts'
import type { SeenResponse } from '../../conformance/support/seen-answers.ts'

/** What tests have met of what the OpenAPI document promises. */
export interface Coverage {
  operations: number
  /** Operations that have never answered with success. */
  withoutSuccess: string[]
  /** Failures that are of an operation, and not of every one. */
  failures: number
  /** Those that have never been answered by it. */
  unmet: string[]
}

const document: OpenApi = JSON.parse(
  readFileSync(new URL('../../../packages/contract/openapi.json', import.meta.url), 'utf8'),
)
const operations = operationsOf(document)

const nameOf = ({ method, template }: { method: string; template: string }): string => `${method} ${template}`

/** Failures that stand in shared descriptions, or that the way of every request may end with: tests of that way meet them. */
const everywhere = new Set(
  `invalid_path payload_too_large rate_limited internal_error starting database_unavailable unauthenticated token_expired forbidden
  cross_origin_request https_required validation_failed unsupported_media_type invalid_json conflict idempotency_key_reused`.split(
    /\s+/,
  ),
)

/** What each operation documents as its own: `POST /api/v1/sites site_name_taken`. */
const documented = operations.flatMap((operation) =>
  Object.entries(operation.responses)
    .filter(([status]) => Number(status) >= 400)
    .flatMap(([, entry]) => {
      const { description } = isReference(entry) ? resolve<ResponseObject>(document, entry) : entry
      const codes = [...description.matchAll(/^- `(\w+)`/gm)].map(([, code = '']) => code)
      return codes.filter((code) => !everywhere.has(code)).map((code) => `${nameOf(operation)} ${code}`)
    }),
)

/** Reads what a run has gathered. */
export function coverageOf(text: string): Coverage {
  const [succeeded, failed] = [new Set<string>(), new Set<string>()]
  for (const line of text.split('\n').filter(Boolean)) {
    const { method, path, status, error }: SeenResponse = JSON.parse(line)
    const operation = operationOf(operations, method, path)
    if (operation === undefined) continue
    if (status < 400) succeeded.add(nameOf(operation))
    else failed.add(`${nameOf(operation)} ${error}`)
  }
  const pairs = [...new Set(documented)]
  return {
    operations: operations.length,
    withoutSuccess: operations.map(nameOf).filter((name) => !succeeded.has(name)),
    failures: pairs.length,
    unmet: pairs.filter((pair) => !failed.has(pair)),
  }
}

import type { ErrorDetail } from '@platform/contract/common'
import { manifestBytes, ModuleManifest } from '@platform/contract/manifest'
import { type PlatformError, platformError } from '../error.ts'
import { checkManifest, type ManifestProblem } from './check-manifest.ts'
import { jsonPointer } from '../lib/validate.ts'

const maxDepth = 16
const maxDetails = 50

export interface ParsedManifest {
  manifest: ModuleManifest
  document: unknown
}

/**
 * The manifest is untrusted. Throws `manifest_invalid` with a detail for each invalid field, at most `maxDetails`, or
 * with one for the whole document.
 */
export function parseManifest(bytes: Uint8Array): ParsedManifest {
  if (bytes.length > manifestBytes) throw manifestTooLargeError()
  const document = parseJson(bytes)
  const limitProblem = findLimitProblem(document)
  if (limitProblem !== undefined) throw manifestInvalidError([limitProblem])
  const parsed = ModuleManifest.safeParse(document)
  if (!parsed.success) {
    throw manifestInvalidError(
      parsed.error.issues.map(({ path, code, message }) => ({ path: path.map(pathSegment), code, message })),
    )
  }
  const problems = checkManifest(parsed.data)
  if (problems.length > 0) throw manifestInvalidError(problems)
  return { manifest: parsed.data, document }
}

export const manifestTooLargeError = (options?: ErrorOptions): PlatformError =>
  manifestInvalidError([documentProblem('too_large', `must have at most ${manifestBytes} bytes`)], options)

const pathSegment = (key: PropertyKey): string | number => (typeof key === 'number' ? key : String(key))

const documentProblem = (code: string, message: string): ManifestProblem => ({ path: [], code, message })

const manifestInvalidError = (problems: readonly ManifestProblem[], options?: ErrorOptions): PlatformError =>
  platformError('manifest_invalid', { details: problems.slice(0, maxDetails).map(toDetail) }, options)

const toDetail = ({ path, code, message }: ManifestProblem): ErrorDetail => ({
  in: 'manifest',
  path: jsonPointer(path).toWellFormed(),
  code,
  message: message.slice(0, 500).toWellFormed(),
})

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw manifestInvalidError([documentProblem('invalid_json', 'must be JSON in UTF-8')], { cause })
  }
}

function findLimitProblem(document: unknown): ManifestProblem | undefined {
  let values: unknown[] = [document]
  for (let depth = 0; values.length > 0; depth++) {
    if (depth > maxDepth) return documentProblem('too_deep', `must not be nested more than ${maxDepth} levels deep`)
    if (values.some((value) => typeof value === 'string' && !value.isWellFormed())) {
      return documentProblem('invalid_unicode', 'must not contain lone surrogates')
    }
    values = values.flatMap((value) => (typeof value === 'object' && value !== null ? Object.values(value) : []))
  }
  return undefined
}

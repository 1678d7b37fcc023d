import { type ErrorDetail } from '@platform/contract/common'
import { manifestBytes, ModuleManifest } from '@platform/contract/manifest'
import { type PlatformError, platformError } from '../error.ts'
import { checkManifest, type ManifestProblem } from './check-manifest.ts'
import { jsonPointer } from '../lib/validate.ts'

/** Parses an untrusted `module.json`. */

const maximumDepth = 16
const maximumDetails = 50

/** A manifest and its source document. */
export interface ReadManifest {
  manifest: ModuleManifest
  document: unknown
}

/** Parses a manifest. Throws `manifest_invalid` with a detail per field, or one for the whole document. */
export function readManifest(bytes: Uint8Array): ReadManifest {
  if (bytes.length > manifestBytes) throw manifestTooLarge()
  const document = jsonOf(bytes)
  const deep = boundsProblem(document)
  if (deep !== undefined) throw refused([deep])
  const parsed = ModuleManifest.safeParse(document)
  if (!parsed.success) {
    throw refused(parsed.error.issues.map(({ path, code, message }) => ({ path: path.map(segment), code, message })))
  }
  const problems = checkManifest(parsed.data)
  if (problems.length > 0) throw refused(problems)
  return { manifest: parsed.data, document }
}

/** The error for a manifest that was not read completely. */
export const manifestTooLarge = (options?: ErrorOptions): PlatformError =>
  refused([whole('too_large', `must have at most ${manifestBytes} bytes`)], options)

const segment = (key: PropertyKey): string | number => (typeof key === 'number' ? key : String(key))

const whole = (code: string, message: string): ManifestProblem => ({ path: [], code, message })

const refused = (problems: readonly ManifestProblem[], options?: ErrorOptions): PlatformError =>
  platformError('manifest_invalid', { details: problems.slice(0, maximumDetails).map(detail) }, options)

const detail = ({ path, code, message }: ManifestProblem): ErrorDetail => ({
  in: 'manifest',
  path: jsonPointer(path).toWellFormed(),
  code,
  message: message.slice(0, 500).toWellFormed(),
})

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw refused([whole('invalid_json', 'must be JSON in UTF-8')], { cause })
  }
}

/** Limits that protect stores and readers: nesting depth and valid Unicode. Walks level by level. */
function boundsProblem(document: unknown): ManifestProblem | undefined {
  let level: unknown[] = [document]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maximumDepth) return whole('too_deep', `must not be nested more than ${maximumDepth} deep`)
    if (level.some((value) => typeof value === 'string' && !value.isWellFormed())) {
      return whole('invalid_unicode', 'must not hold lone surrogates')
    }
    level = level.flatMap((value) => (typeof value === 'object' && value !== null ? Object.values(value) : []))
  }
  return undefined
}

import { RegistryError, type RegistryErrorKind } from '@platform/oci/error'
import { type exitCodes, CliError } from '../exit.ts'

const reasons: Record<RegistryErrorKind, keyof typeof exitCodes> = {
  unreachable: 'unreachable',
  unauthorized: 'refused',
  not_found: 'refused',
  invalid: 'refused',
  too_large: 'refused',
  refused: 'refused',
}

const advice: Partial<Record<RegistryErrorKind, string>> = {
  unauthorized: 'Set PLAT_REGISTRY_USERNAME and PLAT_REGISTRY_PASSWORD, or sign in with: docker login',
}

/** Converts registry and file system errors to `CliError` with advice. Returns other errors unchanged. */
export function explainError(error: unknown): unknown {
  if (error instanceof RegistryError) {
    const { problem, message } = error
    return new CliError(reasons[problem], [message, advice[problem] ?? []].flat().join('\n'), error)
  }
  const isOfSystem = error instanceof Error && 'syscall' in error && 'code' in error
  return isOfSystem ? new CliError('usage', error.message, error) : error
}

import { isCode, sources } from '../../scripts/source.ts'

/** Codes of failures that a test of the code behind the functions, or a journey, expects by name. */
export function expectedCodes(codes: readonly string[]): ReadonlySet<string> {
  const texts = sources()
    .filter((file) => isCode(file) && /^(?:test|conformance)\//.test(file.path))
    .map(({ text }) => text)
  return new Set(codes.filter((code) => texts.some((text) => new RegExp(`['"\` ]${code}['"\`]`).test(text))))
}

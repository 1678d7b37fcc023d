// The build of a release defines this constant.
declare const builtRelease: { version: string; publicKeyPem: string } | undefined

/** The version of the release, else the version in `package.json`, which this constant must repeat. */
export const relayVersion = typeof builtRelease === 'undefined' ? '0.1.0' : builtRelease.version

/** The key that verifies later versions of this program; undefined if this program is not part of a release. */
export const releaseKeyPem = typeof builtRelease === 'undefined' ? undefined : builtRelease.publicKeyPem

/** Whether a version, such as `1.10.0`, is newer than another one. Compares only the first three numbers. */
export function isNewer(version: string, other: string): boolean {
  const [numbers, others] = [version, other].map((text) => text.split(/[.+-]/, 3).map(Number))
  const index = numbers!.findIndex((number, position) => number !== others![position])
  return index >= 0 && numbers![index]! > others![index]!
}

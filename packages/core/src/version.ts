import packageFile from '../package.json' with { type: 'json' }

declare const releasedVersion: string | undefined

/** The version of the platform that this code is: what its release says, in a checkout what the package says. SemVer. */
export const version: string = typeof releasedVersion === 'string' ? releasedVersion : packageFile.version

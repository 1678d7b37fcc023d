import packageFile from '../../package.json' with { type: 'json' }

declare const releasedVersion: string | undefined

/** False for code that was deployed or runs from a checkout. */
export const isReleased: boolean = typeof releasedVersion === 'string'

/** SemVer; taken from the release, or in a checkout from package.json. */
export const version: string = typeof releasedVersion === 'string' ? releasedVersion : packageFile.version

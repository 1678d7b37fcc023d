const statuses = {
  BLOB_UNKNOWN: 404,
  BLOB_UPLOAD_INVALID: 400,
  BLOB_UPLOAD_UNKNOWN: 404,
  DENIED: 403,
  DIGEST_INVALID: 400,
  MANIFEST_BLOB_UNKNOWN: 404,
  MANIFEST_INVALID: 400,
  MANIFEST_UNKNOWN: 404,
  NAME_UNKNOWN: 404,
  PAGINATION_NUMBER_INVALID: 400,
  RANGE_INVALID: 416,
  SIZE_INVALID: 413,
  TOOMANYREQUESTS: 429,
  UNAUTHORIZED: 401,
  UNKNOWN: 500,
  UNSUPPORTED: 405,
} as const
export type RegistryErrorCode = keyof typeof statuses

export class RegistryServerError extends Error {
  override readonly name = 'RegistryServerError'
  readonly code: RegistryErrorCode
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(code: RegistryErrorCode, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.code = code
    this.status = statuses[code]
    this.headers = headers
  }
}

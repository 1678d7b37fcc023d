// Date and time fields contain no time zone and use that of the browser.

/** Browsers accept years of six digits; the API does not. */
export const maxLocalTime = '9999-12-31T23:59'

/** Returns the ISO 8601 time of a field, or '' if the field is empty or invalid. */
export function isoTime(localText: string): string {
  const atMs = Date.parse(localText)
  return Number.isNaN(atMs) ? '' : new Date(atMs).toISOString()
}

/** Returns the value of a field for an ISO 8601 time, or '' without a valid time. */
export function localTime(iso: string | undefined): string {
  const atMs = Date.parse(iso ?? '')
  if (Number.isNaN(atMs)) return ''
  const offsetMs = new Date(atMs).getTimezoneOffset() * 60_000
  return new Date(atMs - offsetMs).toISOString().slice(0, 16)
}

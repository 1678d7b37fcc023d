/**
 * Encloses text in Unicode isolate characters, so that right-to-left letters do not reorder the text around it. Returns
 * printable ASCII unchanged.
 */
export const isolate = (text: string): string => (/^[ -~]*$/.test(text) ? text : `\u2068${text}\u2069`)

/** The names of a user in responses of the API. */
export interface UserNames {
  username: string
  displayName?: string | undefined
}

/** Returns the display name, if there is one, and the user name. Only the user name is unique. */
export const nameOf = ({ username, displayName = username }: UserNames): string =>
  displayName === username ? isolate(username) : `${isolate(displayName)} (${isolate(username)})`

/** Isolates text, so that right-to-left letters do not reorder the text around it. */
export const isolated = (text: string): string => (/^[ -~]*$/.test(text) ? text : `\u2068${text}\u2069`)

interface Named {
  username: string
  displayName?: string
}

/** The display name, if there is one, and the user name. Only the user name is unique. */
export const nameOf = ({ username, displayName = username }: Named): string =>
  displayName === username ? isolated(username) : `${isolated(displayName)} (${isolated(username)})`

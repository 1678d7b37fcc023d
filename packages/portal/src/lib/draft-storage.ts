// Drafts are unsaved input that survives a reload. They are in the session storage of this tab, and contain no secrets.
const prefix = 'draft '

const keyPrefix = (userId: string): string => `${prefix}${userId} `

/**
 * Returns the key of a draft, which contains the user, the path and search parameters of the URL, and the part of the
 * page.
 */
export const draftKey = (userId: string, part: string): string =>
  `${keyPrefix(userId)}${location.pathname}${location.search} ${part}`

/** Returns the key of a draft that does not depend on the search parameters of the URL. */
export const pageDraftKey = (userId: string, part: string): string => `${keyPrefix(userId)}${location.pathname} ${part}`

export function readDraft(key: string): unknown {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? 'null') ?? undefined
  } catch {
    return undefined
  }
}

/** Stores a draft; `undefined` removes it. If the storage is full or unavailable, input does not survive a reload. */
export function writeDraft(key: string, value: unknown): void {
  try {
    if (value === undefined) sessionStorage.removeItem(key)
    else sessionStorage.setItem(key, JSON.stringify(value))
  } catch {
    // Nothing else depends on drafts.
  }
}

const removeKeys = (isRemoved: (key: string) => boolean): void => {
  for (const key of Object.keys(sessionStorage)) if (isRemoved(key)) sessionStorage.removeItem(key)
}

/** Removes all drafts or, with `userId`, those of all other users. */
export const removeOtherDrafts = (userId?: string): void =>
  removeKeys((key) => key.startsWith(prefix) && (userId === undefined || !key.startsWith(keyPrefix(userId))))

/** Removes all entries but drafts: the scroll positions of the router, which the browser restores itself. */
export const removeScrollPositions = (): void => removeKeys((key) => !key.startsWith(prefix))

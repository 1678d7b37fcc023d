/** The URL of a link; undefined if it is not https. */
export const secureLink = (url: string): string | undefined =>
  URL.canParse(url) && new URL(url).protocol === 'https:' ? new URL(url).href : undefined

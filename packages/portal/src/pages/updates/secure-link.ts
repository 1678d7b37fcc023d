/** An address as it can stand in a link: undefined for any that is not https. */
export const secureLink = (url: string): string | undefined =>
  URL.canParse(url) && new URL(url).protocol === 'https:' ? new URL(url).href : undefined

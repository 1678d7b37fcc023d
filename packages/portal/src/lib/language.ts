/**
 * Dates and times are in English, like the texts: in the user's variant, or with a 24-hour clock for users of other
 * languages.
 */
export const language: string = navigator.languages.find((tag) => /^en\b/i.test(tag)) ?? 'en-GB'

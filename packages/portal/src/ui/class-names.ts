/** The names that are there, as one `class` attribute. */
export const classes = (...names: (string | false | undefined)[]): string => names.filter(Boolean).join(' ')

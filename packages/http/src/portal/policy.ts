/**
 * What a browser lets the portal's page do: its own files and the API, frames for the pages of modules, and nothing that
 * stands in the markup. Text becomes neither script nor style, whoever wrote it.
 */
const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  // Scripts of modules are of this origin, too: none of them may stay behind and answer for the portal.
  "worker-src 'none'",
  "frame-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

/** Neither the portal nor a module that it shows asks for any of these. */
const refused = ['camera', 'display-capture', 'geolocation', 'microphone', 'payment', 'serial', 'usb']

/** A browser that came by TLS keeps to it, for a year. Of what came by plain HTTP browsers ignore it. */
const keptToTls = { 'strict-transport-security': 'max-age=31536000' }

/** The headers of the portal's page, as it was asked for. `protocol` is what the gateway was asked by, `https` or `http`. */
export const shellHeaders = (protocol: string | undefined): Record<string, string> => ({
  'content-security-policy': contentPolicy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'same-origin',
  'permissions-policy': refused.map((feature) => `${feature}=()`).join(', '),
  ...(protocol === 'https' && keptToTls),
})

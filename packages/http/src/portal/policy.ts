/** The portal's policy: its own files, the API, and frames for module pages. No inline scripts or styles. */
const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  // Module scripts share this origin: none may register a service worker for the portal.
  "worker-src 'none'",
  "frame-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

/** Browser features that neither the portal nor module pages use. */
const deniedFeatures = ['camera', 'display-capture', 'geolocation', 'microphone', 'payment', 'serial', 'usb']

/** HSTS for one year. Browsers ignore it over plain HTTP. */
const transportSecurity = { 'strict-transport-security': 'max-age=31536000' }

/** The headers of the portal's page. `protocol` is the gateway's request protocol: `https` or `http`. */
export const shellHeaders = (protocol: string | undefined): Record<string, string> => ({
  'content-security-policy': contentPolicy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'same-origin',
  'permissions-policy': deniedFeatures.map((feature) => `${feature}=()`).join(', '),
  ...(protocol === 'https' && transportSecurity),
})

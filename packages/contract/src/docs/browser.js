/* Search, language tabs and requests of the API reference. Without this script, the page shows all content. */
const queryAll = (selector, root = document) => [...root.querySelectorAll(selector)]
const element = (name, properties = {}, ...children) => {
  const created = Object.assign(document.createElement(name), properties)
  created.append(...children)
  return created
}

/* Search */
const search = document.getElementById('search')
const status = document.querySelector('.search [role=status]')
const contents = document.querySelector('nav details')
const links = new Map(queryAll('nav li a').map((link) => [link.hash.slice(1), link.closest('li')]))
const entries = queryAll('article').map((article) => ({
  article,
  link: links.get(article.id),
  text: [article.id, ...queryAll('h3, .route, .name', article).map((part) => part.textContent)].join(' ').toLowerCase(),
}))
const parts = [...queryAll('section'), ...queryAll('nav ul')]

const find = () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
  let count = 0
  for (const { article, link, text } of entries) {
    const isFound = words.every((word) => text.includes(word))
    article.hidden = !isFound
    if (link) link.hidden = !isFound
    if (isFound) count += 1
  }
  for (const part of parts) {
    const isEmpty = queryAll('article, li a', part).every((entry) => entry.closest('article, li').hidden)
    part.hidden = isEmpty
    if (part.localName === 'ul') part.previousElementSibling.hidden = isEmpty
  }
  document.querySelector('.introduction').hidden = words.length > 0
  if (words.length > 0) contents.open = true
  status.textContent = words.length > 0 ? `${count} of ${entries.length} operations and events` : ''
}

const clear = () => {
  search.value = ''
  find()
}
search.addEventListener('input', find)
document.addEventListener('keydown', (event) => {
  const isTyping = /^(?:input|textarea|select)$/.test(event.target.localName ?? '')
  if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey) {
    event.preventDefault()
    search.focus()
  } else if (event.key === 'Escape' && event.target === search) clear()
})
addEventListener('hashchange', () => {
  const target = document.getElementById(location.hash.slice(1))
  if (target?.closest('[hidden]')) {
    clear()
    target.scrollIntoView()
  }
})
document.querySelector('.search').hidden = false

/* Language tabs: a choice applies to all operations. */
const choose = (language) => {
  for (const tab of queryAll('[role=tab]')) {
    const isChosen = tab.dataset.language === language
    tab.ariaSelected = String(isChosen)
    tab.tabIndex = isChosen ? 0 : -1
  }
  for (const panel of queryAll('[role=tabpanel]')) panel.hidden = panel.dataset.language !== language
}
for (const panel of queryAll('.samples div[data-language]')) panel.role = 'tabpanel'
for (const tab of queryAll('[role=tab]')) {
  tab.addEventListener('click', () => {
    const before = tab.getBoundingClientRect().top
    choose(tab.dataset.language)
    scrollBy(0, tab.getBoundingClientRect().top - before)
  })
  tab.addEventListener('keydown', ({ key }) => {
    if (key !== 'ArrowLeft' && key !== 'ArrowRight') return
    const other = key === 'ArrowRight' ? tab.nextElementSibling : tab.previousElementSibling
    other?.focus()
    other?.click()
  })
}
choose('curl')

/* Requests */
let token = ''
let documentPromise
const loadDocument = () => {
  documentPromise ??= fetch('/api/v1/openapi.json').then((response) => {
    if (!response.ok) throw new Error(`status ${response.status}`)
    return response.json()
  })
  documentPromise.catch(() => (documentPromise = undefined))
  return documentPromise
}

const operationOf = (apiDocument, operationId) => {
  for (const [path, methods] of Object.entries(apiDocument.paths))
    for (const [method, operation] of Object.entries(methods))
      if (operation.operationId === operationId) return { path, method: method.toUpperCase(), operation }
  throw new Error(`There is no operation ${operationId}.`)
}

const field = (labelText, input, help) => {
  const label = element('label', {}, element('span', { textContent: labelText }), input)
  return help ? element('div', { className: 'field' }, label, element('p', { textContent: help })) : label
}

const inputOf = ({ schema, required = false, in: place }) => {
  const input = schema.enum
    ? element('select', { required }, ...['', ...schema.enum].map((value) => new Option(value, value)))
    : element('input', { required, autocomplete: 'off', spellcheck: false })
  if (place === 'path') input.value = schema.example ?? ''
  return input
}

const tokenField = () => {
  const input = element('input', { type: 'password', autocomplete: 'off', value: token, className: 'token' })
  input.addEventListener('input', () => {
    token = input.value.trim()
    for (const other of queryAll('input.token')) if (other !== input) other.value = input.value
  })
  return field(
    'Token',
    input,
    'Access or API token; this page forgets it when you leave. Empty: your session of the portal.',
  )
}

const show = async (output, send) => {
  output.replaceChildren(element('p', { textContent: 'Waiting for the response …' }))
  try {
    const startMs = performance.now()
    const response = await send()
    const text = await response.text()
    const bodyElement = element(
      'pre',
      { tabIndex: 0 },
      element('code', { textContent: formatBody(text) || '(no body)' }),
    )
    const traceId = response.headers.get('x-trace-id')
    const duration = `${Math.round(performance.now() - startMs)} ms`
    const facts = [`${response.status} ${response.statusText}`.trim(), duration, traceId && `trace id ${traceId}`]
    output.replaceChildren(element('p', { textContent: facts.filter(Boolean).join(' · ') }), bodyElement)
    if (response.status === 401 && token === '')
      output.append(element('p', { textContent: 'Sign in to the portal in this browser, or enter a token.' }))
  } catch {
    output.replaceChildren(
      element('p', { textContent: 'The platform did not respond. Check the connection and try again.' }),
    )
  }
}

const formatBody = (text) => {
  try {
    text = JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    /* A text that is not JSON is shown unchanged. */
  }
  return text.length > 100_000 ? `${text.slice(0, 100_000)}\n… ${text.length - 100_000} more characters` : text
}

const formOf = (apiDocument, button) => {
  const { path, method, operation } = operationOf(apiDocument, button.dataset.operation)
  const parameters = (operation.parameters ?? [])
    .map((one) => (one.$ref ? apiDocument.components.parameters[one.$ref.split('/').at(-1)] : one))
    .map((parameter) => ({ ...parameter, input: inputOf(parameter) }))
  const example = operation.requestBody?.content['application/json']?.example
  const body =
    example === undefined
      ? undefined
      : element('textarea', { value: JSON.stringify(example, null, 2), rows: 10, spellcheck: false })
  const isChange = button.dataset.effect === 'changes'
  const output = element('div', { className: 'output', role: 'status' })
  const form = element('form', { className: isChange ? 'changes' : '', ariaLabel: `Request: ${operation.summary}` })
  if (operation.security?.length > 0) form.append(tokenField())
  for (const { name, required, input } of parameters) form.append(field(required ? name : `${name} (optional)`, input))
  if (body) form.append(field('Body', body))
  if (isChange) {
    const confirmation = element('input', { type: 'checkbox', required: true })
    const warning = `${method} changes data of this platform. Send the request.`
    form.append(element('label', { className: 'warning' }, confirmation, element('span', { textContent: warning })))
  }
  form.append(element('button', { type: 'submit', textContent: `Send ${method}` }), output)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const headers = {
      ...(token !== '' && { authorization: `Bearer ${token}` }),
      ...(body && { 'content-type': 'application/json' }),
    }
    const query = new URLSearchParams()
    let target = path
    for (const { name, in: place, input } of parameters) {
      if (place === 'path') target = target.replace(`{${name}}`, encodeURIComponent(input.value))
      else if (input.value !== '' && place === 'query') query.set(name, input.value)
      else if (input.value !== '') headers[name] = input.value
    }
    const address = query.size > 0 ? `${target}?${query}` : target
    const request = {
      method,
      headers,
      credentials: 'same-origin',
      redirect: 'manual',
      ...(body && { body: body.value }),
    }
    void show(output, () => fetch(address, request))
  })
  return form
}

for (const button of queryAll('button.try')) {
  button.hidden = false
  button.ariaExpanded = 'false'
  button.addEventListener('click', async () => {
    const openPanel = button.nextElementSibling
    if (openPanel) {
      openPanel.remove()
      button.ariaExpanded = 'false'
      return
    }
    const panel = element('div')
    button.after(panel)
    button.ariaExpanded = 'true'
    try {
      panel.append(formOf(await loadDocument(), button))
      panel.querySelector('input, select, textarea, button')?.focus()
    } catch {
      panel.append(element('p', { role: 'alert', textContent: 'The OpenAPI document could not be loaded. Try again.' }))
    }
  })
}

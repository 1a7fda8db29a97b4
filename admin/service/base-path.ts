/** The path of the service, without a slash at the end. The service writes it into the page. */
export const BASE_PATH = document.documentElement.dataset['basePath'] ?? ''

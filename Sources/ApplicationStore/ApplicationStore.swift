/// Placeholder of the layout.
package enum ApplicationStoreLayout {}
